"""`overspill shell`: a command line that its person has edited is shown to others as it was in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client.shell import CAPTURE_ID, Shell
from tests.client.test_cli_shell import START_FILES, write_start_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client.shell import Terminal
    from tests.servers.overspill import ServiceProcess

LEFT = b"\x1b[D"
START = b"\x01"


@pytest.mark.parametrize("name", START_FILES)
def test_an_edited_command_is_shown_as_the_terminal_shows_it(
    service: ServiceProcess, tmp_path: Path, name: str
) -> None:
    overspill, terminal = started(service, tmp_path, name)
    enter(terminal, b"echo abcdef", LEFT * 3 + b"X")
    enter(terminal, b"echo 12", START + b"true; : ;")
    shown = shown_at_end(overspill, terminal)

    assert "ready> echo abcXdef" in shown
    assert "ready> true; : ;echo 12" in shown


@pytest.mark.parametrize("name", START_FILES)
def test_a_command_that_is_edited_after_the_terminal_was_resized_is_shown_as_the_terminal_shows_it(
    service: ServiceProcess, tmp_path: Path, name: str
) -> None:
    overspill, terminal = started(service, tmp_path, name)
    terminal.resize(40, 24)
    enter(terminal, b"true 1")
    enter(terminal, b"echo " + b"abcdefghij" * 6 + b"z", LEFT * 51 + b"X")
    shown = shown_at_end(overspill, terminal)

    assert f"ready> echo abcdefghijX{'abcdefghij' * 5}z" in shown


def started(service: ServiceProcess, home: Path, name: str) -> tuple[Shell, Terminal]:
    write_start_file(home, name)
    overspill = Shell(service.url, HOME=str(home), OVERSPILL_SPOOL="off")
    terminal = overspill.terminal("shell", "--shell", name, LANG="C.UTF-8")
    terminal.wait_for(b"ready> ")
    return overspill, terminal


def shown_at_end(overspill: Shell, terminal: Terminal) -> list[str]:
    """End the shell. Return the lines that others read."""
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    terminal.press(b"exit\r")
    terminal.ended()
    return [line.strip() for line in overspill("head", handle).out.split("\n")]


def enter(terminal: Terminal, *keys: bytes) -> None:
    """Press keys, the next ones when the last of these is shown, and wait for the next prompt."""
    for each in keys:
        shown = len(terminal.shown)
        terminal.press(each)
        terminal.wait_for(each[-1:], after=shown)
    shown = len(terminal.shown)
    terminal.press(b"\r")
    terminal.wait_for(b"133;D;", after=shown)
    terminal.wait_for(b"ready> ", after=terminal.shown.index(b"133;D;", shown))
