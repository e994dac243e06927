"""`overspill shell`: the person's shell as a terminal that others read, command by command."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient
from overspill.reading.shell_marks import Section, ShellMarks
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, Shell

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


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
