"""`run_command` and `search_files`: captured at the source, against a real service, shell and ripgrep."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from overspill import Client, Guard, Spool, SyncClient, calling, wire
from overspill.agent_tools.source_tools import source_tools
from overspill.wire import State

from tests.client.shell import written_to
from tests.processes import processes_in
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.agent_tools.agent_tool import AgentTool

    from tests.servers.overspill import ServiceProcess

RG = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
ENGINES = pytest.mark.parametrize("ripgrep", [RG, None], ids=["ripgrep", "python"])


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with SyncClient(service.url, session="source") as client, Guard(client, spool=False) as made:
        yield made


def stored(guard: Guard, answer: dict[str, Any]) -> bytes:
    assert isinstance(guard.client, SyncClient)
    return guard.client.content(answer["overspill"]["capture"])


# --- run_command ----------------------------------------------------------------------------------


@pytest.fixture
def run_command(guard: Guard, tmp_path: Path) -> AgentTool:
    return source_tools(guard, tmp_path)[0]


def test_a_short_output_is_answered_whole(run_command: AgentTool) -> None:
    answer = run_command.call({"command": "echo out; echo err >&2; exit 3"})

    assert answer == {"exit_code": 3, "timed_out": False, "output": "out\nerr\n"}


def test_a_long_output_is_stored_whole(guard: Guard, run_command: AgentTool) -> None:
    answer = run_command.call({"command": "seq 300000; false"})

    assert answer["exit_code"] == 1
    assert "failed: exit 1" in answer["output"]
    assert len(json.dumps(answer)) < 20_000
    assert stored(guard, answer) == b"".join(b"%d\n" % number for number in range(1, 300_001))


def test_an_output_just_too_long_for_an_answer_is_stored_too(guard: Guard, run_command: AgentTool) -> None:
    answer = run_command.call({"command": "head -c 19000 /dev/zero | tr '\\0' x"})

    assert stored(guard, answer) == b"x" * 19_000


async def test_it_answers_asynchronous_code_the_same(run_command: AgentTool) -> None:
    given = {"command": "seq 3"}

    assert await run_command.acall(given) == run_command.call(given)


def test_a_command_that_takes_too_long_is_ended_with_its_children(
    run_command: AgentTool, tmp_path: Path
) -> None:
    command = "echo begun; (sleep 60; touch late) & sleep 60"
    answer = run_command.call({"command": command, "timeout_seconds": "1"})

    assert answer["timed_out"] is True
    assert answer["output"] == "begun\n"
    assert not list(tmp_path.glob("late"))


def test_a_command_that_closes_its_output_is_waited_for(run_command: AgentTool) -> None:
    answer = run_command.call({"command": "echo said; exec >&- 2>&-; sleep 0.3; exit 4"})

    assert answer == {"exit_code": 4, "timed_out": False, "output": "said\n"}


def test_a_command_that_closes_its_output_is_ended_in_time(run_command: AgentTool) -> None:
    answer = run_command.call({"command": "exec >&- 2>&-; sleep 60", "timeout_seconds": 1})

    assert answer["timed_out"] is True


def test_what_a_command_leaves_behind_is_not_waited_for(run_command: AgentTool) -> None:
    begun = time.monotonic()
    answer = run_command.call({"command": "sleep 30 & echo $!"})
    os.kill(int(answer["output"]), 9)

    assert answer["exit_code"] == 0
    assert time.monotonic() - begun < 20


def test_what_a_command_leaves_behind_lives_on_in_a_frozen_program(
    run_command: AgentTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go", "result"):
        os.mkfifo(tmp_path / name)
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\necho started again > {tmp_path}/result\n")
    agent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(agent))
    run_command.call({"command": "(read go < go; echo late; echo later; echo lives > result) &"})
    (tmp_path / "go").write_text("\n")

    assert written_to(tmp_path / "result") == "lives\n"


def test_what_a_command_leaves_behind_lives_on_without_the_systems_programs_on_the_path(
    run_command: AgentTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go", "result"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    run_command.call({"command": "(read go < go; echo late; echo later; echo lives > result) &"})
    (tmp_path / "go").write_text("\n")

    assert written_to(tmp_path / "result") == "lives\n"


def test_what_a_command_leaves_behind_lives_on_in_an_image_without_cat(
    run_command: AgentTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go", "result"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setattr(os, "defpath", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    run_command.call({"command": "(read go < go; echo late; echo later; echo lives > result) &"})
    (tmp_path / "go").write_text("\n")

    assert written_to(tmp_path / "result") == "lives\n"


async def test_a_cancelled_call_ends_its_command(run_command: AgentTool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    call = asyncio.ensure_future(run_command.acall({"command": "echo > begun; sleep 60; touch late"}))
    await asyncio.to_thread((tmp_path / "begun").read_text)
    assert processes_in(tmp_path)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    wait_until(lambda: not processes_in(tmp_path), "the end of the command")
    assert not (tmp_path / "late").exists()


async def test_another_machine_sees_a_long_output_while_its_command_runs(
    service: ServiceProcess, tmp_path: Path
) -> None:
    token = "ghp_" + "aB3" * 12
    command = f"seq 300000; echo token {token}; until test -e go-on; do sleep 0.05; done; exit 3"
    async with (
        Client(service.url, session="source-live") as client,
        Client(service.url, session="source-live") as other,
        Guard(client, spool=False) as guard,
    ):
        tool = source_tools(guard, tmp_path)[0]
        with calling("call_7"):
            running = asyncio.create_task(tool.acall({"command": command}))
        while not (await other.list(session="source-live", state=State.LIVE)).captures:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        seen = await other.wait("call:call_7", "^token .REDACTED", timeout=60)
        (tmp_path / "go-on").touch()
        answer = await running
        entry = await other.get("call:call_7")

    assert (seen.reason, seen.state) == ("pattern", State.LIVE)
    assert (answer["exit_code"], answer["overspill"]["capture"]) == (3, entry.id)
    assert (entry.state, entry.status, entry.tool) == (State.COMPLETE, "exit 3", "run_command")
    assert entry.labels[wire.EXIT_CODE_LABEL] == "3"
    assert entry.labels[wire.REDACTED_LABEL] == "github-token=1"
    assert entry.labels[wire.COMMAND_LABEL].startswith("seq 300000; echo token [REDACTED github-token];")


def test_a_service_that_is_away_makes_no_command_wait(nowhere: str, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with SyncClient(nowhere, session="away", retries=0) as client, Guard(client, spool=spool) as guard:
        answer = source_tools(guard, tmp_path)[0].call({"command": "seq 300000"})

    entry = spool.partition(nowhere, client.address.key).find(answer["overspill"]["capture"])
    assert (answer["exit_code"], entry and entry.lines) == (0, 300_000)


def test_bytes_that_are_no_text_are_an_answer(run_command: AgentTool) -> None:
    assert run_command.call({"command": r"printf 'a\377b'"})["output"] == "a\ufffdb"


def test_a_signal_gives_the_exit_code_of_a_shell(run_command: AgentTool) -> None:
    assert run_command.call({"command": "kill -9 $$"})["exit_code"] == 137


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "command"),
        ({"command": " "}, "must have text"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "ls", "directory": "nowhere"}, "cannot be run in 'nowhere'"),
        ({"command": "ls", "shell": "zsh"}, "run_command takes command, directory, timeout_seconds"),
        ("ls", "not JSON"),
    ],
)
def test_a_mistake_is_explained(run_command: AgentTool, arguments: Any, said: str) -> None:
    assert said in run_command.call(arguments)["error"]


def test_commands_get_the_environment_that_they_are_given(guard: Guard, tmp_path: Path) -> None:
    (tool, _) = source_tools(guard, tmp_path, environment={"PATH": os.defpath, "COLOUR": "blue"})

    assert tool.call({"command": "echo $COLOUR; pwd"})["output"] == f"blue\n{tmp_path}\n"


# --- search_files ---------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "a.py": "import os\nprint('needle')\n",
        "b/c.py": "x = 1\r\nneedle = 2\r\n",
        "b.txt": "Needle\nno newline needle",
        "b/.hidden": "needle\n",
        "node_modules/x.js": "needle\n",
        "b/dist/x.py": "needle\n",
        "b/build": "needle in a file that is called build\n",
        ".gitignore": "a.py\n",
        "B/z.py": "needle\n",
        "space name/é.py": "needle é\n",
        "empty": "",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "tree" / "binary").write_bytes(b"\0needle\n")
    (tmp_path / "tree" / "latin.txt").write_bytes(b"caf\xe9 needle\n")
    (tmp_path / "tree" / "link.py").symlink_to("a.py")
    (tmp_path / "tree" / "loop").symlink_to(".")
    return tmp_path / "tree"


def search(guard: Guard, tree: Path, ripgrep: str | None, **arguments: Any) -> dict[str, Any]:
    return source_tools(guard, tree, ripgrep=ripgrep)[1].call(arguments)


@ENGINES
def test_it_finds_lines_in_the_order_of_the_paths(guard: Guard, tree: Path, ripgrep: str | None) -> None:
    answer = search(guard, tree, ripgrep, pattern="needle")

    assert answer["output"].splitlines() == [
        "B/z.py:1:needle",
        "a.py:2:print('needle')",
        "b/.hidden:1:needle",
        "b/build:1:needle in a file that is called build",
        "b/c.py:2:needle = 2",
        "b.txt:2:no newline needle",
        "latin.txt:1:caf\ufffd needle",
        "space name/é.py:1:needle é",
    ]
    assert (answer["matches"], answer["files"]) == (8, 8)


@ENGINES
@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "NEEDLE", "ignore_case": "true"},
        {"pattern": "needle$"},
        {"pattern": "^needle"},
        {"pattern": "needle", "glob": "*.py"},
        {"pattern": "needle", "glob": "[!a]*.py"},
        {"pattern": "needle", "path": "b"},
        {"pattern": "needle", "path": "b/c.py"},
        {"pattern": "needle", "path": "node_modules"},
        {"pattern": "(", "fixed": True},
        {"pattern": "-e"},
        {"pattern": "absent"},
        {"pattern": "needle|import"},
        {"pattern": r"\bneedle\s=\s\d"},
        {"pattern": ""},
        {"pattern": "(("},
        {"pattern": "x", "path": "nowhere"},
        {"pattern": "x", "glob": "b/*.py"},
    ],
    ids=str,
)
def test_both_engines_answer_the_same(
    guard: Guard, tree: Path, ripgrep: str | None, arguments: dict[str, Any]
) -> None:
    answer, other = search(guard, tree, ripgrep, **arguments), search(guard, tree, None, **arguments)

    assert answer.keys() == other.keys()
    if "error" not in other:
        assert answer == other


ASCII = [*"ab \n\t.x", "\r\n"]


def texts_of(characters: list[str]) -> st.SearchStrategy[list[bytes]]:
    text = st.lists(st.sampled_from(characters), max_size=60).map(lambda parts: "".join(parts).encode())
    return st.lists(text, max_size=4)


@given(
    searched=st.tuples(texts_of(ASCII), st.sampled_from([r"\s", r"x\b", r"\w\s\w"]))
    | st.tuples(
        texts_of([*ASCII, "é", "\u2028"]),
        st.sampled_from(["a", "^a", "b$", "a.b", "é", "a|b", "^$", "[^a]"]),
    )
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_engines_find_the_same_lines(
    guard: Guard, tmp_path_factory: pytest.TempPathFactory, searched: tuple[list[bytes], str]
) -> None:
    texts, pattern = searched
    folder = tmp_path_factory.mktemp("texts")
    for number, text in enumerate(texts):
        (folder / f"{number}").write_bytes(text)

    assert search(guard, folder, RG, pattern=pattern) == search(guard, folder, None, pattern=pattern)


@ENGINES
def test_many_matches_are_stored_whole(guard: Guard, tmp_path: Path, ripgrep: str | None) -> None:
    (tmp_path / "many").write_text("".join(f"needle {number}\n" for number in range(10_000)))
    answer = search(guard, tmp_path, ripgrep, pattern="needle")

    assert answer["matches"] == 10_000
    assert len(json.dumps(answer)) < 20_000
    assert stored(guard, answer).splitlines()[-1] == b"many:10000:needle 9999"


@ENGINES
def test_an_endless_line_is_cut(guard: Guard, tmp_path: Path, ripgrep: str | None) -> None:
    (tmp_path / "long").write_bytes(b"needle" + b"x" * 5_000_000 + b"\nneedle\n")
    answer = search(guard, tmp_path, ripgrep, pattern="needle")

    assert answer["matches"] == 2
    assert answer["output"].endswith("bytes more]\nlong:2:needle\n")
    assert len(answer["output"]) < 10_000


async def test_a_cancelled_search_ends(guard: Guard, tmp_path: Path) -> None:
    for number in range(2_000):
        (tmp_path / f"{number}").write_text("needle\n" * 100)
    _, tool = source_tools(guard, tmp_path, ripgrep=None)
    call = asyncio.ensure_future(tool.acall({"pattern": "needle"}))
    await asyncio.sleep(0)
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
