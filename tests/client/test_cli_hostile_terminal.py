"""`overspill run`, `shell` and `put --live` where nothing is as usual: no home, no size, odd bytes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient, wire
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, Shell
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

ODD = b"\x00nul \xff\xfe \xc3( \xed\xa0\x80 \x1b[31mred\x1b[0m \x1b]0;title\x07\r\n"


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


def without(shell: Shell, *names: str) -> Shell:
    """The shell without variables of its environment."""
    for name in names:
        shell.environment.pop(name, None)
    return shell


def odd_lines(folder: Path) -> bytes:
    whole = b"".join(b"%d %s" % (number, ODD) for number in range(4000))
    (folder / "odd").write_bytes(whole)
    return whole


def test_bytes_that_are_no_text_are_stored_as_they_are(
    overspill: Shell, service: ServiceProcess, tmp_path: Path
) -> None:
    whole = odd_lines(tmp_path)
    result = overspill("run", "--", "cat", str(tmp_path / "odd"))
    with SyncClient(service.url) as client:
        content = client.content(result.capture)

    assert result.code == 0
    assert content == whole


def test_a_home_is_not_needed(service: ServiceProcess, tmp_path: Path) -> None:
    shell = without(Shell(service.url), "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME")
    result = shell("run", "--", "seq", "30000")
    terminal = shell.terminal("shell", "--name", "homeless", SHELL="/bin/sh", PS1="ready> ")
    terminal.wait_for(b"ready> ")
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    terminal.press(b"echo at $((40 + 2)); exit 7\n")
    code = terminal.ended()
    with SyncClient(service.url) as client:
        shown = client.content(handle)

    assert (result.code, "Traceback" in result.err) == (0, False)
    assert "Stored whole" in result.out or result.capture
    assert (code, b"at 42" in shown) == (7, True)


@pytest.mark.parametrize("closed", ["<&-", "<&- >/dev/null"])
def test_closed_streams_change_no_exit_code(service: ServiceProcess, closed: str) -> None:
    shell = Shell(service.url, OVERSPILL_SESSION="closed")
    result = shell.script(f"overspill run -- sh -c 'seq 30000; exit 3' {closed}\nexit $?")
    with SyncClient(service.url) as client:
        entry = client.list(session="closed").captures[0]

    assert (result.code, "Traceback" in result.err) == (3, False)
    assert (entry.lines, entry.status) == (30_000, "exit 3")


def test_a_terminal_without_a_size_breaks_nothing(overspill: Shell) -> None:
    asks = "import os; input('go? '); print('size', *os.get_terminal_size())"
    terminal = overspill.terminal("run", "--", sys.executable, "-c", asks, columns=0)
    terminal.wait_for(b"go? ")
    terminal.resize(0, 0)
    terminal.press(b"\r")
    code = terminal.ended()

    assert code == 0
    assert b"size " in terminal.shown
    assert b"Traceback" not in terminal.shown


def test_a_hang_up_ends_the_command_and_its_capture(overspill: Shell, service: ServiceProcess) -> None:
    terminal = overspill.terminal(
        "run", "--session", "hung-up", "--", "sh", "-c", "seq 30000; echo ready; exec sleep 600"
    )
    terminal.wait_for(b"ready")
    with SyncClient(service.url) as client:
        wait_until(lambda: client.list(session="hung-up").captures, "the live capture")
        terminal.signal(signal.SIGHUP)
        terminal.ended()

        def has_ended() -> bool:
            return client.list(session="hung-up").captures[0].state is not State.LIVE

        wait_until(has_ended, "the end of the capture")
        tail = client.tail(client.list(session="hung-up").captures[0].id, 1)

    assert tail.content == "ready\n"


def test_what_is_stopped_goes_on_where_it_was(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "sh", "-c", "echo ready; read a; echo got $a; exit 4")
    terminal.wait_for(b"ready")
    terminal.signal(signal.SIGSTOP)
    terminal.wait_for_stop()
    terminal.press(b"it\r")
    terminal.signal(signal.SIGCONT)

    assert terminal.ended() == 4
    assert b"got it" in terminal.shown


def test_a_live_put_that_is_killed_leaves_all_that_it_sent(tmp_path: Path) -> None:
    with running(ForkedService(tmp_path / "overspill", live_timeout=2.0)) as service:
        shell = Shell(service.url, OVERSPILL_SPOOL=str(tmp_path / "spool"))
        process = shell.start("put", "--live", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        handle = process.stdout.readline().decode().strip()
        with SyncClient(service.url) as client:
            wait_until(lambda: client.get(handle).size == 8, "the output")
            process.kill()
            process.communicate()
            wait_until(lambda: client.get(handle).state is State.PARTIAL, "the end of its producer")
            entry, content = client.get(handle), client.content(handle)

    assert (content, entry.gap) == (b"one\ntwo\n", None)


def test_labels_with_control_characters_reach_no_terminal(service: ServiceProcess) -> None:
    evil = "name\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202eevil"
    shell = Shell(service.url)
    with SyncClient(service.url, session="evil") as client:
        labels = {wire.TERMINAL_LABEL: evil, wire.COMMAND_LABEL: f"make {evil}\nsecond line"}
        with client.live(tool="shell", labels=labels) as out:
            out.write("one\n")
            out.flush()
            terminal = shell.terminal("terminals", "--session", "evil", columns=200)
            code = terminal.ended()
            listed = json.loads(shell("terminals", "--json", "--session", "evil").out)

    shown = terminal.shown.decode("utf-8", "replace")
    assert code == 0
    assert "name" in shown
    assert [each for each in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e") if each in shown] == []
    assert listed


@pytest.mark.parametrize(
    "event",
    [
        b'[-5, "o", "back in time"]',
        b'[1e308, "o", "far away"]',
        b"[" * 100_000,
        b'[0.1, "o", ' + b'{"a":' * 50_000,
        b'[0.1, "o", "' + b"x" * 20_000_000 + b'"]',
        b'[0.1, "o", "\\ud800 half a character"]',
        b'[NaN, "o", "never"]',
        b"\x00\xff\xfe",
    ],
    ids=["negative", "far", "nested", "nested data", "huge", "surrogate", "nan", "bytes"],
)
def test_a_hostile_recording_is_stored_and_breaks_nothing(
    overspill: Shell, service: ServiceProcess, event: bytes
) -> None:
    header = b'{"version": 3, "term": {"cols": 80, "rows": 24}}\n[0.1, "o", "first\\n"]\n'
    cast = header + event + b'\n[0.1, "o", "last\\n"]\n'
    result = overspill("put", "--live", "--format", "asciicast", "-", stdin=cast)
    with SyncClient(service.url) as client:
        entry, content = client.get(result.capture), client.content(result.capture)

    assert "Traceback" not in result.err
    assert result.code in (0, 6)
    assert entry.state is State.COMPLETE
    assert content.startswith(b"first\n")
    assert b"last" in content


@pytest.mark.parametrize("header", [b'{"version": 9}', b'{"version": "3"}', b'{"version": 3, "term": null}'])
def test_a_recording_of_another_version_is_stored_as_it_came(
    overspill: Shell, service: ServiceProcess, header: bytes
) -> None:
    cast = header + b'\n[0.1, "o", "first\\n"]\n'
    result = overspill("put", "--live", "--format", "asciicast", "-", stdin=cast)
    with SyncClient(service.url) as client:
        content = client.content(result.capture)

    assert (result.code, "Traceback" in result.err) == (6, False)
    assert content == cast
