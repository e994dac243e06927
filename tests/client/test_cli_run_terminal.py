"""`overspill run` on a terminal: the command has one of its own, and its output is stored while it runs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import SyncClient
from overspill.cli.command_output.terminal_process import LineEnds
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, Shell, command, written_to
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

ASKS = """
import os, signal, threading
print([os.isatty(each) for each in range(3)], *os.get_terminal_size(), flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])

def tell_sizes():
    while signal.sigwait([signal.SIGWINCH]):
        print(*os.get_terminal_size(), flush=True)

threading.Thread(target=tell_sizes, daemon=True).start()
os._exit(len(input("name? ")))
"""
"""A handler of Python would not run if the signal came just before `input` begins to wait.

It leaves by `os._exit`: Python aborts if a daemon thread is still within `print` when it ends.
"""


BLOCKS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program as some that wait for signals by a descriptor do."""


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


def test_the_command_has_a_terminal_of_the_same_size_that_answers_keys(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", sys.executable, "-c", ASKS, columns=132)
    terminal.wait_for(b"[True, True, True] 132 24\r\nname? ")
    terminal.resize(100, 30)
    terminal.wait_for(b"100 30\r\n")
    terminal.press(b"four\r")

    assert terminal.ended() == 4, terminal.shown


def test_colours_and_titles_are_the_commands_own(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "printf", r"\033[31mred\033]0;title\007\n")

    assert terminal.ended() == 0
    assert terminal.shown == b"\x1b[31mred\x1b]0;title\x07\r\n"


def test_a_signal_that_ends_the_command_is_its_exit_code(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "cat")
    terminal.press(b"ready\r")
    terminal.wait_for(b"ready\r\nready")  # a shell that is about to start it could lose the signal
    terminal.press(b"\x03")

    assert terminal.ended() == 130


def test_keys_that_are_pressed_before_the_command_runs_are_the_commands(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "head", "-n", "2")
    terminal.press(b"one\rtwo\r")

    assert terminal.ended() == 0
    assert terminal.shown.endswith(b"one\r\ntwo\r\n")


def test_the_key_that_stops_a_command_gives_the_shell_back_until_it_goes_on(overspill: Shell) -> None:
    run = shlex.join(command("run", "--", "sh", "-c", "echo ready; read word; echo got $word; exit 4"))
    terminal = overspill.script_on_terminal(f"set -m; {run}; stty -a; echo stopped $?; fg; echo ended $?")
    terminal.wait_for(b"ready")
    terminal.press(b"\x1a")
    terminal.wait_for(b"stopped 0")
    settings = terminal.shown
    terminal.press(b"it\r")
    terminal.ended()

    assert b" icanon" in settings
    assert b"got it\r\n" in terminal.shown
    assert b"ended 4" in terminal.shown


def test_a_command_goes_on_in_the_background_and_comes_back_to_the_foreground(
    overspill: Shell, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    asks = f"echo ready; read go <{tmp_path}/go; echo went' 'on; read word; echo got $word"
    run = shlex.join(command("run", "--", "sh", "-c", asks))
    terminal = overspill.script_on_terminal(
        f"set -m; {run}; bg; echo >{tmp_path}/go; read _; fg; echo ended $?"
    )
    terminal.wait_for(b"ready")
    terminal.press(b"\x1a")
    terminal.wait_for(b"went on")
    terminal.press(b"for the shell\r")
    terminal.press(b"it\r")
    terminal.ended()

    assert b"got it\r\n" in terminal.shown
    assert b"ended 0" in terminal.shown


def test_the_end_of_a_command_is_seen_also_if_the_signal_for_it_is_blocked(overspill: Shell) -> None:
    run = command("run", "--", "sh", "-c", "echo done; exit 4")
    terminal = overspill.script_on_terminal(f"exec {shlex.join([sys.executable, '-c', BLOCKS, *run])}")

    assert terminal.ended() == 4
    assert terminal.shown == b"done\r\n"


def test_what_a_command_leaves_on_its_terminal_is_not_waited_for_and_lives_on(
    overspill: Shell, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "result")
    left = f"(read go <{tmp_path}/go; echo late && echo lives >{tmp_path}/result) & echo started"
    terminal = overspill.terminal("run", "--", "sh", "-c", left)
    code = terminal.ended()
    (tmp_path / "go").write_text("\n")

    assert (code, terminal.shown) == (0, b"started\r\n")
    assert written_to(tmp_path / "result") == "lives\n"


def test_what_a_command_leaves_behind_may_print_for_ever(overspill: Shell, tmp_path: Path) -> None:
    terminal = overspill.terminal("run", "--", "sh", "-c", f"yes & echo $! >{tmp_path}/left; exit 5")
    code = terminal.ended()
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)  # there is such a process

    assert code == 5


def test_a_hang_up_reaches_all_of_a_command(overspill: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "result")
    below = f"trap 'echo hung up >{tmp_path}/result; exit' HUP; echo ready; while :; do sleep 0.05; done"
    terminal = overspill.terminal("run", "--", "sh", "-c", f"sh -c {shlex.quote(below)}; true")
    terminal.wait_for(b"ready")
    terminal.signal(signal.SIGHUP)

    assert written_to(tmp_path / "result") == "hung up\n"
    assert terminal.ended() == 128 + signal.SIGHUP


def test_what_a_long_command_prints_can_be_read_before_it_ends(overspill: Shell) -> None:
    words = ["sh", "-c", "seq 1 30000; read answer; echo got $answer; exit 3"]
    terminal = overspill.terminal(
        "run", "--tool", "watched", "--session", "cli-live", "--notice", "--", *words
    )
    terminal.wait_for(b"\r\n30000\r\n")
    with SyncClient(overspill.environment["OVERSPILL_URL"]) as client:
        assert until(lambda: client.list(session="cli-live", state=State.LIVE).captures)
        [live] = client.list(session="cli-live", state=State.LIVE).captures
        assert until(lambda: client.tail(live.id, 1).content.endswith("30000\n"))
        terminal.press(b"it\r")
        code = terminal.ended()
        entry = client.get(live.id)

        assert (code, entry.state, entry.status) == (3, "complete", "exit 3")
        assert entry.labels["overspill.terminal"] == "watched"
        assert entry.labels["overspill.command"].startswith("sh -c 'seq 1 30000;")
        assert client.tail(live.id, 2).content == "it\ngot it\n"
        assert set(CAPTURE_ID.findall(terminal.shown.decode())) == {live.id}
        assert len(client.list(session="cli-live").captures) == 1


def test_the_notice_names_the_live_capture_and_nothing_is_stored_twice(overspill: Shell) -> None:
    result = overspill("run", "--session", "cli-once", "--", "seq", "1", "30000")
    with SyncClient(overspill.environment["OVERSPILL_URL"]) as client:
        (entry,) = client.list(session="cli-once").captures

    assert result.out.startswith("[overspill] Output of seq (")
    assert (entry.id, entry.labels["overspill.command"]) == (result.capture, "seq 1 30000")


@given(st.binary(max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_line_ends_are_the_commands_own_in_any_pieces(data: bytes, cuts: list[int]) -> None:
    data = data.replace(b"a", b"\r").replace(b"b", b"\r\n")
    found: list[bytes] = []
    ends, at = LineEnds(found.append), 0
    for cut in [*sorted(cuts), len(data)]:
        ends.feed(data[at:cut])
        at = max(at, cut)
    ends.end()

    assert b"".join(found) == data.replace(b"\r\n", b"\n")


def test_a_recording_of_a_command_has_the_size_of_its_terminal(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--max-bytes", "99", "--", "seq", "3000", columns=132)
    terminal.ended()
    handle = CAPTURE_ID.findall(terminal.shown.decode())[0]
    recording = overspill("cat", handle, "--format", "asciicast").out

    assert json.loads(recording.split("\n")[0])["term"] == {"cols": 132, "rows": 24}
