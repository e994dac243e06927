"""The number of our own calls between the guard and the socket, for one output that is stored."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import overspill
import pytest
from overspill import Guard, SyncClient
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from tests.servers.overspill import ServiceProcess

MAX_CALLS: Final = 12
OF_THE_LOOP: Final = {"LoopThread._serve", "LoopThread._until_stopped"}
"""What the loop thread runs always, also while it has no output."""
OURS: Final = str(Path(overspill.__file__).parent)
TEXT: Final = "a line of an output that is too long for a conversation\n" * 1_200


def running(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def awaiting(coroutine: Any) -> Iterator[CodeType]:
    """The coroutines of a task that waits, the outermost first."""
    while getattr(coroutine, "cr_code", None) is not None:
        yield coroutine.cr_code
        coroutine = coroutine.cr_await


def is_running(task: asyncio.Task[Any]) -> bool:
    """Whether the task is on this thread's stack: so is one that has begun another, which runs first."""
    coroutine: Any = task.get_coro()
    return bool(coroutine.cr_running)


def wait_until_waiting(caller: int) -> None:
    """Let the thread that brought the output go on until it waits for the answer."""
    until = time.monotonic() + 10
    while all(code.co_qualname != "SyncExecutor.result" for code in running(sys._current_frames()[caller])):
        assert time.monotonic() < until, "the caller does not wait"
        time.sleep(0.001)


def calls_under_way(caller: int, test: CodeType) -> list[str]:
    """Our calls, in the thread `caller` above `test`, and in the tasks of the loop that runs here."""
    above = list(running(sys._current_frames()[caller]))
    stacks = [reversed(above[: above.index(test)])]
    stacks += [awaiting(task.get_coro()) for task in asyncio.all_tasks() if not is_running(task)]
    stacks.append(reversed(list(running(sys._getframe()))))
    calls = [code.co_qualname for stack in stacks for code in stack if code.co_filename.startswith(OURS)]
    return [call for call in calls if call not in OF_THE_LOOP]


def test_few_calls_lie_between_the_guard_and_the_socket(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    send, caller, test = socket.socket.send, threading.get_ident(), sys._getframe().f_code

    def watched(self: socket.socket, data: Any, *flags: int) -> int:
        if bytes(data[:4]) == b"PUT ":
            wait_until_waiting(caller)
            found.extend(calls_under_way(caller, test))
        return send(self, data, *flags)

    monkeypatch.setattr(socket.socket, "send", watched)
    with SyncClient(service.url, session="depth") as client, Guard(client) as guard:
        guarded = guard.process_sync(TEXT, tool="t")

    assert guarded.outcome is Outcome.CAPTURED
    assert 0 < len(found) <= MAX_CALLS, "\n".join(found)
