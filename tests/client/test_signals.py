"""A guard in a signal handler, or interrupted by one, whatever the main thread does just then."""

from __future__ import annotations

import functools
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from overspill import Guard, Policy, SyncClient

from tests.client.shell import run_code
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

HANDLING: Final = """
import logging, signal, sys
from overspill import Guard, Policy, Spool, SyncClient
logging.getLogger("overspill").addHandler(logging.NullHandler())
LONG = "a line of text\\n" * 600
policy = Policy(max_bytes=5_000, preview_bytes=500, wait=1.0)
guard = Guard(SyncClient(sys.argv[1], retries=0), policy, spool=Spool(sys.argv[2]))
outcomes, busy, left = [], [], []

def handle(*_):
    if busy or not left:
        return
    busy.append(left.pop())
    for text in (LONG, "short"):
        outcomes.append(guard.process_sync(text, tool=f"handler {len(outcomes)}").outcome)
    busy.clear()

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for number in range(200):
    left = [True, True]  # so many handlers run at most, however slow the machine is
    outcomes.append(guard.process_sync(f"{number} {LONG}", tool="t").outcome)
    guard.process_sync("short", tool=f"tool {number}")
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(outcomes) > 210, sorted(set(map(str, outcomes))))
"""


def test_signal_handlers_may_guard_outputs_at_any_moment(tmp_path: Path) -> None:
    done = run_code(HANDLING, "http://127.0.0.1:1", tmp_path, environment=clean_environment(), seconds=200)

    assert (done.stdout, done.stderr) == ("True ['inline', 'spooled']\n", "")


NO_LOCK: Final = """
import logging, os, threading
from overspill.execution import loop_thread
held = threading.Event()

def hold():
    with logging._lock:
        held.set()
        threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
loop_thread._new_loop().close()
print("made", flush=True)
os._exit(0)  # the usual end would wait for the lock
"""


def test_an_event_loop_is_made_without_a_lock_of_logging() -> None:
    """Another thread may need it while a handler, which interrupted the making, waits for that thread."""
    done = subprocess.run(
        [sys.executable, "-c", NO_LOCK], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout, done.stderr) == ("made\n", "")


class TimeIsUp(Exception):
    """What the handlers below raise, as those do that bound the time of a call."""

    @classmethod
    def raised(cls, *_: object) -> None:
        raise cls


class Handling:
    def __call__(self, *_: object) -> None:
        raise TimeIsUp


HANDLERS: Final[dict[str, Callable[[int, FrameType | None], object]]] = {
    "a method": TimeIsUp.raised,
    "a partial function": functools.partial(TimeIsUp.raised, "more"),
    "an object": Handling(),
}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS.keys())
def test_an_error_of_a_signal_handler_reaches_whoever_called_the_guard(
    handler: Callable[[int, FrameType | None], object],
) -> None:
    before = signal.signal(signal.SIGALRM, handler)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        with SyncClient(url, retries=0) as client, Guard(client, Policy(wait=0.3), spool=False) as guard:
            try:
                with pytest.raises(TimeIsUp):  # noqa: PT012  (a busy machine may take longer than the time)
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    guard.process_sync("a line of text\n" * 10_000, tool="t")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
