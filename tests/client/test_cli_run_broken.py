"""`overspill run` while its terminal, its reader or its service goes away, and what signals do to it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, Shell
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

WAITS = "seq 300000; until test -e go-on; do sleep 0.05; done; seq 300000; exit 3"
WHOLE = 2 * (b"%d\n" * 300_000 % tuple(range(1, 300_001)))
SAYS_SIGNALS = """
import os, signal, sys
numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGWINCH]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
while (number := signal.sigwait(numbers)) != signal.SIGTERM:
    print("got", signal.Signals(number).name, *os.get_terminal_size(), flush=True)
sys.exit(43)
"""


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


def test_a_command_on_a_terminal_gets_the_signals_of_run_and_decides(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", sys.executable, "-c", SAYS_SIGNALS)
    terminal.wait_for(b"ready\r\n")
    terminal.signal(signal.SIGUSR1)
    terminal.wait_for(b"got SIGUSR1 80 24\r\n")
    terminal.signal(signal.SIGINT)
    terminal.wait_for(b"got SIGINT 80 24\r\n")
    terminal.resize(120, 40)
    terminal.wait_for(b"got SIGWINCH 120 40\r\n")
    terminal.signal(signal.SIGTERM)

    assert terminal.ended() == 43
    assert b"Traceback" not in terminal.shown


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
def test_a_command_that_a_signal_ends_on_a_terminal_gives_its_code(
    overspill: Shell, name: str, code: int
) -> None:
    assert overspill.terminal("run", "--", "sh", "-c", f"kill -{name} $$").ended() == code


@pytest.mark.parametrize(("count", "shown"), [(1_000, "1"), (100_000, "[overspill] Output of sh ")])
def test_a_reader_that_takes_one_line_loses_nothing_of_what_is_stored(
    service: ServiceProcess, count: int, shown: str
) -> None:
    shell = Shell(service.url, OVERSPILL_SESSION=f"head {count}")
    script = f"overspill run -- sh -c 'seq {count}; exit 3' | head -1; echo ${{PIPESTATUS[0]}}"
    done = shell.script(script)
    with SyncClient(service.url) as client:
        found = client.list(session=f"head {count}").captures

    first, code = done.out.splitlines()
    assert first.startswith(shown)
    assert code in {"3", "141"}  # the command's, or that of a write that nobody reads any more
    assert "Traceback" not in done.err
    # a short one is stored only if the machine is so busy that the command ran for two seconds
    assert [each.lines for each in found] in ([[count], []] if count == 1_000 else [[count]])


def test_a_service_that_is_killed_and_comes_back_has_the_whole_under_one_handle(tmp_path: Path) -> None:
    with running(ForkedService(tmp_path / "overspill")) as service:
        shell = Shell(service.url, OVERSPILL_SESSION="back", OVERSPILL_SPOOL=str(tmp_path / "spool"))
        process = shell.start("run", "--", "sh", "-c", WAITS, cwd=tmp_path, stdout=-1, stderr=-1)
        with SyncClient(service.url, session="back") as client:
            wait_until(lambda: client.list().captures, "the live capture")
            handle = client.list().captures[0].id
            wait_until(lambda: client.live_status(handle).accepted > 1_000_000, "a beginning")
            service.kill()
            service.start()
            (tmp_path / "go-on").touch()
            printed, said = process.communicate(timeout=60)
            found, content = client.list(session="back").captures, client.content(handle)

    assert (process.returncode, CAPTURE_ID.findall(printed.decode())[0], said) == (3, handle, b"")
    assert [(each.id, each.state, each.status) for each in found] == [(handle, State.COMPLETE, "exit 3")]
    assert content == WHOLE


def test_what_is_shown_on_a_terminal_that_goes_away_is_stored(
    service: ServiceProcess, tmp_path: Path
) -> None:
    shell = Shell(service.url, OVERSPILL_SESSION="shown")
    reader, writer = os.pipe()
    process = shell.start("run", "--live", "--", "sh", "-c", WAITS, cwd=tmp_path, stdout=-1, stderr=writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    (tmp_path / "go-on").touch()
    printed, _ = process.communicate(timeout=60)
    with SyncClient(service.url) as client:
        assert client.content(CAPTURE_ID.findall(printed.decode())[0]) == WHOLE
    assert process.returncode == 3
