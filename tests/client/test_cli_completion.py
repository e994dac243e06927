"""Words that real shells complete with the script of `overspill completion`."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from overspill.transfer.sync import SyncClient

from tests.client.shell import OVERSPILL, Shell
from tests.servers.overspill import ServiceProcess, clean_environment

NOBODY: Final = "http://127.0.0.1:9"
FILE: Final = "a file"
FOLDER: Final = "a folder"
"""What bash and zsh are told, which then look for it themselves."""

STARTING: Final = {
    "bash": 'eval "$(overspill completion bash)"',
    "zsh": 'eval "$(overspill completion zsh)"',
    "fish": "overspill completion fish | source",
}
"""What a person has a shell run where it starts."""
BASH: Final = """
compopt() {{ case "$2" in default) echo 'a file';; dirnames) echo 'a folder';; esac; }}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_overspill_completion overspill
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH: Final = """
_path_files() {{ case "$1" in -f) echo 'a file';; -/) echo 'a folder';; esac }}
compadd() {{ print -rl -- $completions }}
_describe() {{ print -rl -- ${{completions_with_descriptions%%:*}} }}
words=({words}); CURRENT=$#words
_overspill_completion
"""
FISH: Final = """
complete -C {line}
"""


def said(program: list[str], folder: Path, url: str = NOBODY) -> list[str]:
    environment = clean_environment()
    environment["PATH"] = f"{folder}:{Path(sys.executable).parent}:{environment['PATH']}"
    environment |= {"HOME": str(folder), "OVERSPILL_URL": url}
    done = subprocess.run(
        program, capture_output=True, text=True, env=environment, cwd=folder, check=True, timeout=120
    )
    assert not done.stderr
    assert "\x1b" not in done.stdout
    return done.stdout.split("\n")


def completed(
    shell: str, folder: Path, *words: str, url: str = NOBODY, begin: str | None = None
) -> list[str]:
    """What the shell offers for the last of the words; of fish without the descriptions.

    The shell runs `begin` first, or else what `overspill completion` prints.
    """
    texts = {"words": shlex.join(words), "line": shlex.quote(" ".join(words))}
    asking = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(**texts)
    return [
        each.partition("\t")[0]
        for each in said(program(shell, (begin or completion_script(shell)) + asking), folder, url)
        if each
    ]


def program(shell: str, script: str) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    no_other_completion = "compdef() { : }\n" if shell == "zsh" else ""
    return [shell, *flags, "-c", no_other_completion + script]


@cache
def completion_script(shell: str) -> str:
    return Shell(NOBODY)("completion", shell).out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, a file and a folder of its own; its programs are found.

    Its `overspill` starts soon: a shell starts it for each word that it completes.
    """
    (tmp_path / "zz-report.json").write_text("{}")
    (tmp_path / "zz-data").mkdir()
    for name, does in {"zz-build": "", "overspill": f'exec {shlex.join(OVERSPILL.command())} "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


SHELLS: Final = pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])


@SHELLS
def test_what_a_shell_runs_where_it_starts_makes_it_complete(shell: str, tmp_path: Path) -> None:
    assert completed(shell, tmp_path, "overspill", "su", begin=STARTING[shell]) == ["summary"]


@SHELLS
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["overspill", "su"], ["summary"]),
        (["overspill", "spool", "fl"], ["flush"]),
        (["overspill", "grep", "--ignore"], ["--ignore-case"]),
        (["overspill", "grep", "--color", "al"], ["always"]),
        (["overspill", "completion", "fi"], ["fish"]),
        (["overspill", "run", "--", "zz-"], ["zz-build"]),
        (["overspill", "run", "--tool", "t", "zz-"], ["zz-build"]),
        (["overspill", "shell", "--shell", "zz-"], ["zz-build"]),
        (["overspill", "head", "cap_"], []),
        (["overspill", "nothing", "x"], []),
    ],
)
def test_words_of_commands_are_completed(
    shell: str, words: list[str], expected: list[str], folder: Path
) -> None:
    assert completed(shell, folder, *words) == expected


@SHELLS
@pytest.mark.parametrize(
    "words",
    [
        ["overspill", "put", "zz-r"],
        ["overspill", "cat", "-o", "zz-r"],
        ["overspill", "advise", "--policy", "zz-r"],
        ["overspill", "run", "--", "wc", "zz-r"],
        ["overspill", "run", "--", "./zz-r"],
    ],
)
def test_files_are_completed_where_one_is_named(shell: str, words: list[str], folder: Path) -> None:
    name = "./zz-report.json" if words[-1].startswith("./") else "zz-report.json"

    assert completed(shell, folder, *words) == ([name] if shell == "fish" else [FILE])


@SHELLS
def test_folders_are_completed_where_one_is_named(shell: str, folder: Path) -> None:
    expected = "zz-data/" if shell == "fish" else FOLDER

    assert completed(shell, folder, "overspill", "demo", "--data", "zz-") == [expected]


@SHELLS
def test_handles_are_completed(shell: str, folder: Path, service: ServiceProcess) -> None:
    hostile = "tool\n\x1b[31m\tplain,rm"
    with SyncClient(service.url) as client:
        one, other = (client.put(f"{shell} {each}\n").id for each in range(2))
        third = client.put(f"{shell}, of a tool", tool=hostile).id
    words = "overspill", "tail"

    assert {one, other, third} <= {*completed(shell, folder, *words, "cap_", url=service.url)}
    assert completed(shell, folder, *words, one[:-1], url=service.url) == [one]
    assert completed(shell, folder, *words, third[:-1], url=service.url) == [third]
    assert completed(shell, folder, *words, "--url", service.url, other[:-1]) == [other]


@pytest.mark.parametrize("command", ["stat", "rm", "open", "terminals"])
def test_handles_of_every_command_are_completed(command: str, folder: Path, service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        one, other = (client.put(f"{command} {each}\n").id for each in range(2))
    words = "overspill", command

    assert completed("bash", folder, *words, one[:-1], url=service.url) == [one]
    assert completed("bash", folder, *words, "--url", service.url, other[:-1]) == [other]


def test_a_service_that_does_not_answer_offers_no_handles(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        assert completed("bash", folder, "overspill", "tail", "cap_", url=url) == []


def test_fish_shows_a_description_to_its_end(folder: Path) -> None:
    script = completion_script("fish") + FISH.format(line="'overspill put --ke'")

    assert said(program("fish", script), folder) == [
        "--key\tThe API key. OVERSPILL_KEY is safer: process lists show options.",
        "",
    ]


def test_a_shell_without_a_completion_is_named() -> None:
    result = Shell(NOBODY)("completion", "tcsh")

    assert result.code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in result.err
