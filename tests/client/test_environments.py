"""Agents as others run them: without docstrings, without a home, without a place to write."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from overspill.spools.spool import Spool
from overspill.transfer.address import Address
from overspill.transfer.key import own_key

from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

SECONDS: Final = 120
BARE: Final = (
    "from overspill import Guard, SyncClient, inspection_tool, reading_tools\n"
    "client = SyncClient()\n"
    "told = *(tool.description for tool in reading_tools(Guard(client))), inspection_tool(client).__doc__\n"
    "print(*(text[:4] for text in told))\n"
    "from overspill.cli.app import app\n"
    "app(['cat', '--help'])"
)


def test_without_docstrings_models_and_people_are_told_what_tools_and_commands_do() -> None:
    ended = subprocess.run([sys.executable, "-OO", "-c", BARE], capture_output=True, text=True, check=True)
    told, usage, _, summary, *_ = ended.stdout.splitlines()

    assert (told, usage[:6]) == ("Read List Read", "Usage:")
    assert summary.strip() == "Print all of a capture, or a range of bytes."


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The home that the process is told of. It is none yet."""
    for name in ("OVERSPILL_SPOOL", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "OVERSPILL_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "home"


def test_in_a_home_that_is_still_to_be_made_the_spool_is_made(home: Path) -> None:
    assert Spool().path == home / ".local" / "state" / "overspill" / "spool"


def test_in_a_home_that_cannot_be_written_the_spool_is_among_the_temporary_files(home: Path) -> None:
    home.write_text("no folder, as /dev/null")

    assert Spool().path == home.parent / "temporary" / f"overspill-{os.getuid()}" / "spool"


def test_a_home_that_is_no_whole_path_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "relative")

    assert Spool().path.is_relative_to(home.parent / "temporary")


def test_where_nothing_can_be_written_a_spool_says_so_only_when_it_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusable() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    home.write_text("no folder")
    monkeypatch.setattr("tempfile.gettempdir", unusable)

    assert Spool().path == Path(f"/overspill-{os.getuid()}/spool")


def test_a_home_that_is_no_folder_has_no_key(home: Path) -> None:
    home.write_text("no folder, as /dev/null")
    near = Address(url="http://127.0.0.1:8750", key="", timeout=1, connect_timeout=1, retries=0)

    assert own_key(near) == ""


@pytest.mark.skipif(not os.geteuid(), reason="nothing is closed to root")
def test_a_home_that_is_closed_to_this_user_has_no_key(home: Path) -> None:
    home.mkdir(mode=0)
    near = Address(url="http://127.0.0.1:8750", key="", timeout=1, connect_timeout=1, retries=0)

    assert own_key(near) == ""


IN_GREEN_THREADS: Final = """
import sys
from overspill import Guard, SyncClient
import eventlet

eventlet.monkey_patch()

def spill(number):
    with SyncClient(sys.argv[1]) as client, Guard(client) as guard:
        return guard.process_sync(f"line {number}\\n" * 8_000, tool="t").outcome

print(*{thread.wait() for thread in [eventlet.spawn(spill, number) for number in range(4)]})
"""


@pytest.mark.skipif(find_spec("eventlet") is None, reason="there is no eventlet for this system")
def test_threads_that_are_replaced_after_the_import_hold_up_nothing(
    service: ServiceProcess, tmp_path: Path
) -> None:
    environment = clean_environment(OVERSPILL_SPOOL=str(tmp_path / "spool"))
    ended = subprocess.run(
        [sys.executable, "-c", IN_GREEN_THREADS, service.url],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=SECONDS,
    )

    assert ended.stdout.split() == ["captured"]
