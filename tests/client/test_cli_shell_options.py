"""`overspill shell`: options and aliases of a person's own start files change nothing of what is marked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.client.shell import CAPTURE_ID, Shell
from tests.client.test_cli_shell import press_line, write_start_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("bash", "set -u"),
        ("bash", "set -e"),
        ("bash", "alias printf='echo own'"),
        ("zsh", "setopt no_unset"),
        ("zsh", "setopt err_exit"),
        ("zsh", "alias printf='echo own'"),
        ("fish", "alias printf 'echo own'"),
    ],
)
def test_commands_are_marked_whatever_the_start_file_sets(
    service: ServiceProcess, tmp_path: Path, name: str, own: str
) -> None:
    write_start_file(tmp_path, name, f"{own}\n")
    overspill = Shell(service.url, HOME=str(tmp_path), OVERSPILL_SPOOL="off")
    terminal = overspill.terminal("shell", "--shell", name, LANG="C.UTF-8")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    for line in ("! true", "echo two"):
        press_line(terminal, line)
    terminal.press(b"exit 5\r")
    code = terminal.ended()
    sections = json.loads(overspill("terminals", "--json", handle).out)[:2]

    assert code == 5
    assert [(each["command"], each["exit_code"]) for each in sections] == [("! true", 1), ("echo two", 0)]
