"""`overspill shell`: the person's shell as a terminal that others read, command by command."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from typing import TYPE_CHECKING, Final

import pytest
from overspill import SyncClient
from overspill.reading.shell_marks import Section, ShellMarks
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, Shell
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client.shell import Terminal
    from tests.servers.overspill import ServiceProcess

START_FILES: Final = {
    "bash": (".bashrc", "PS1='ready> '\nHISTCONTROL=ignoreboth\n"),
    "zsh": (".zshrc", "PS1='ready> '\n"),
    "fish": (".config/fish/config.fish", "function fish_prompt; echo -n 'ready> '; end\n"),
}


@pytest.fixture
def overspill(service: ServiceProcess, tmp_path: Path) -> Shell:
    (tmp_path / ".bashrc").write_text("PS1='ready> '\nalias hello='echo hello from my own file'\n")
    return Shell(service.url, HOME=str(tmp_path), SHELL="/bin/bash", OVERSPILL_SPOOL="off")


def test_each_command_of_a_shell_can_be_found(overspill: Shell, service: ServiceProcess) -> None:
    terminal = overspill.terminal("shell", "--name", "work", "--session", "shell-tests")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    for line in (b"hello; seq 3", b"(exit 4)", b"echo $OVERSPILL_TERMINAL; tty -s && echo a terminal"):
        shown = len(terminal.shown)
        terminal.press(line + b"\n")
        terminal.wait_for(b"ready> ", after=shown)
    with SyncClient(service.url) as client:
        live = None
        while live is None:  # storing never makes the shell wait: it may begin a moment later
            live = next(iter(client.list(session="shell-tests", state=State.LIVE).captures), None)
        terminal.press(b"exit 5\n")
        code = terminal.ended()
        ended, tail = client.get(handle), client.content(handle).decode()
        sections = json.loads(overspill("terminals", "--json", handle).out)

    assert (live.id, live.labels["overspill.terminal"], live.tool) == (handle, "work", "shell")
    assert (code, ended.state, ended.status) == (5, "complete", "exit 5")
    assert [(each["command"], each["exit_code"]) for each in sections[:3]] == [
        ("hello; seq 3", 0),
        ("(exit 4)", 4),
        ("echo $OVERSPILL_TERMINAL; tty -s && echo a terminal", 0),
    ]
    lines = tail.split("\n")
    first = sections[0]
    assert [line.rpartition("\x07")[2] for line in lines[first["start"] - 1 : first["end"]]] == [
        "hello from my own file",
        "1",
        "2",
        "3",
    ]
    assert f"{handle}\na terminal\n" in tail.replace("\x1b]133;C\x07", "")


def test_who_leaves_a_shell_while_the_service_hangs_is_told_what_is_waited_for_and_kept(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text("PS1='ready> '\n")
    spool = str(tmp_path / "spool")
    shell = Shell(own_service.url, HOME=str(tmp_path), SHELL="/bin/bash", OVERSPILL_SPOOL=spool)
    terminal = shell.terminal("shell")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    with SyncClient(own_service.url) as client:
        wait_until(lambda: any(each.size for each in client.list().captures), "the beginning of its output")
    os.kill(own_service.pid, signal.SIGSTOP)
    try:
        terminal.press(b"exit\r")
        terminal.wait_for(b"waiting for the service")
        terminal.press(b"\x03")
        code = terminal.ended()
    finally:
        os.kill(own_service.pid, signal.SIGCONT)

    assert code == 130
    said = f"ended by SIGINT; {handle} is on this machine only, until it is uploaded"
    assert said in " ".join(terminal.shown.decode().split())


def press_line(terminal: Terminal, line: str) -> None:
    """Run one command, and wait for the prompt behind it."""
    shown = len(terminal.shown)
    terminal.press(line.encode() + b"\r")
    terminal.wait_for(b"133;D;", after=shown)
    terminal.wait_for(b"ready> ", after=terminal.shown.index(b"133;D;", shown))


def output_of(content: str, section: dict[str, int]) -> str:
    """Return the text of a section's lines, without what the shell wrote before and behind it."""
    text = "\n".join(content.split("\n")[section["start"] - 1 : section["end"]])
    return text.rpartition("\x1b]133;C\x07")[2].partition("\x1b]133;D;")[0].rpartition("\r")[2]


def write_start_file(home: Path, name: str, more: str = "") -> None:
    """Write what a shell runs first. The test is skipped where the shell is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    file, text = START_FILES[name]
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text(text + more)


@pytest.mark.parametrize("name", START_FILES)
def test_sections_have_the_command_its_exit_code_and_its_lines(
    overspill: Shell, service: ServiceProcess, tmp_path: Path, name: str
) -> None:
    write_start_file(tmp_path, name)
    commands = {
        "echo one; seq 2": (0, "one\n1\n2"),
        "sh -c 'exit 4'": (4, ""),
        "printf 'no line end'": (0, "no line end"),
        'echo "a;b\\\\ é"': (0, "a;b\\ é"),
        "for i in 1 2; do echo $i; done" if name != "fish" else "for i in 1 2; echo $i; end": (0, "1\n2"),
    }
    terminal = overspill.terminal("shell", "--shell", name, LANG="C.UTF-8")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    for line in (*commands, "false", "false"):
        press_line(terminal, line)
    terminal.press(b"exit 5\r")
    code = terminal.ended()
    with SyncClient(service.url) as client:
        content = client.content(handle).decode()
    sections = json.loads(overspill("terminals", "--json", handle).out)[:7]

    assert code == 5
    assert [each["command"] for each in sections] == [*commands, "false", "false"]
    assert [each["exit_code"] for each in sections] == [0, 4, 0, 0, 0, 1, 1]
    assert [output_of(content, each) for each in sections[:5]] == [shown for _, shown in commands.values()]
    assert all(each["end"] == each["start"] - 1 for each in (sections[1], *sections[5:]))


@pytest.mark.parametrize(
    ("shell", "reads_own"),
    [
        ("bash --norc", False),
        ("bash --rcfile ~/own", True),
        ("bash -l", True),
        ("zsh -f", False),
        ("zsh --no-rcs", False),
    ],
)
def test_a_shell_that_is_told_what_to_read_marks_its_commands_too(
    overspill: Shell, tmp_path: Path, shell: str, *, reads_own: bool
) -> None:
    if shutil.which(shell.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{shell} is not installed")
    for file in (".bashrc", ".zshrc"):
        (tmp_path / file).write_text("usual=1\n")
    for file in ("own", ".bash_profile"):
        (tmp_path / file).write_text("own=2\nPS1='ready> '\nPROMPT_COMMAND=\"$PROMPT_COMMAND; mine=3\"\n")
    terminal = overspill.terminal("shell", "--shell", shell.replace("~", str(tmp_path)), PS1="ready> ")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    for line in ("(exit 4)", "echo read:$usual$own$mine", "env | grep -c PROMPT_COMMAND"):
        press_line(terminal, line)
    terminal.press(b"exit\r")
    terminal.ended()
    sections = json.loads(overspill("terminals", "--json", handle).out)

    assert [(each["command"], each["exit_code"]) for each in sections[:2]] == [
        ("(exit 4)", 4),
        ("echo read:$usual$own$mine", 0),
    ]
    assert f"read:{'23' * reads_own}\r\n".encode() in terminal.shown
    assert b"\x07\x1b]133;C\x070\r\n" in terminal.shown.replace(b"\x1b[?2004l\r", b"")


def test_bash_names_no_command_that_its_history_leaves_out(overspill: Shell) -> None:
    terminal = overspill.terminal("shell", "--shell", "bash")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    for line in ("HISTCONTROL=ignorespace", "echo one", " echo two", "echo one"):
        press_line(terminal, line)
    terminal.press(b"exit\r")
    terminal.ended()
    sections = json.loads(overspill("terminals", "--json", handle).out)

    assert [each["command"] for each in sections[1:4]] == ["echo one", "", "echo one"]


def test_bash_names_a_repeated_command_for_people_whose_start_file_is_strict(
    overspill: Shell, tmp_path: Path
) -> None:
    for history in ("", "HISTCONTROL=ignoreboth:erasedups\n"):
        (tmp_path / ".bashrc").write_text(f"set -u\n{history}PS1='ready> '\n")
        terminal = overspill.terminal("shell", "--shell", "bash")
        terminal.wait_for(b"ready> ")
        handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
        for line in ("echo one", "true", "echo one", "echo one"):
            press_line(terminal, line)
        terminal.press(b"exit\r")
        terminal.ended()
        sections = json.loads(overspill("terminals", "--json", handle).out)

        assert b"unbound" not in terminal.shown
        assert [each["command"] for each in sections[:4]] == ["echo one", "true", "echo one", "echo one"]
        assert ["-", "0", "true"] in [row.split() for row in overspill("terminals", handle).out.splitlines()]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_the_persons_own_start_files_from_their_own_folder(
    overspill: Shell, tmp_path: Path
) -> None:
    (tmp_path / "dots").mkdir()
    (tmp_path / ".zshenv").write_text("export ZDOTDIR=$HOME/dots FROM_ENV=env\n")
    (tmp_path / "dots" / ".zshrc").write_text("PS1='ready> '\nfrom_rc=rc\n")
    terminal = overspill.terminal("shell", "--shell", "zsh", columns=200)
    terminal.wait_for(b"ready> ")
    press_line(terminal, 'echo "<$ZDOTDIR|$FROM_ENV|$from_rc|${OVERSPILL_ZDOTDIR-unset}>"')
    terminal.press(b"exit\r")
    terminal.ended()

    assert f"<{tmp_path}/dots|env|rc|unset>" in terminal.shown.decode()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_without_a_folder_of_its_own_has_none_afterwards(overspill: Shell, tmp_path: Path) -> None:
    (tmp_path / ".zshrc").write_text("PS1='ready> '\nsetopt nopromptsp\n")
    terminal = overspill.terminal("shell", "--shell", "zsh", columns=200)
    terminal.wait_for(b"ready> ")
    press_line(terminal, 'echo "<${ZDOTDIR-unset}>"')
    terminal.press(b"exit\r")
    terminal.ended()

    assert "<unset>" in terminal.shown.decode()


def test_a_shell_needs_a_terminal(overspill: Shell) -> None:
    assert overspill("shell").code == 2


def test_marks_are_found_in_any_pieces() -> None:
    text = (
        b"\x1b]133;A\x07$ \x1b]133;B\x07ls\n\x1b]633;E;ls \\x3b a\\\\b;nonce\x07\x1b]133;C\x07one\ntwo\n"
        b"\x1b]133;D;0\x1b\\\x1b]133;A\x07$ \x1b]633;C\x07no line end\x1b]633;D\x07\n\x1b]0;title\x07"
        b"\x1b]133;C\x07"
    )
    random_ = random.Random(1)
    for _ in range(50):
        marks, at = ShellMarks(), 0
        while at < len(text):
            size = random_.randint(1, 12)
            marks.feed(text[at : at + size])
            at += size

        assert marks.sections == [
            Section(command="ls ; a\\b", start=2, end=3, exit_code=0),
            Section(command="", start=4, end=4),
            Section(command="", start=5),
        ]


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ("", None),
        ("7;more", 7),
        ("-1073741510", -1073741510),
        ("٣", None),
        ("1e3", None),
        ("9" * 5_000, None),
    ],
)
def test_an_exit_code_is_a_number_whatever_a_terminal_shows(told: str, code: int | None) -> None:
    marks = ShellMarks()
    marks.feed(f"\x1b]133;C\x07one\n\x1b]133;D;{told}\x07".encode())

    assert [each.exit_code for each in marks.sections] == [code]


def test_two_integrations_of_one_shell_make_one_section_of_a_command() -> None:
    marks = ShellMarks()
    marks.feed(b"\x1b]133;A\x07$ ls\n\x1b]133;C\x07\x1b[30m\x1b(B\x1b]633;E;ls\x07\x1b]133;C\x07one\n")
    marks.feed(b"\x1b]133;D;0\x07\x1b]133;D;0\x07\x1b]633;E;cd\x07\x1b]133;C\x07\x1b]133;C\x07\x1b[m\r")
    marks.feed(b"\x1b]133;D;1\x07$ ")

    assert marks.sections == [
        Section(command="ls", start=2, end=2, exit_code=0),
        Section(command="cd", start=3, end=2, exit_code=1),
    ]
