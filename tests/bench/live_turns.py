"""Turns that an agent spends until it sees that a server is ready: looking again and again, or waiting."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from overspill import SyncClient, inspection_tool

from tests.bench import table
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.live.sync_capture import SyncLiveCapture

    from tests.bench.scale import Scale

    Tool = Callable[..., dict[str, Any]]

DELAYS: Final = (5, 30, 300)
"""Seconds from the start of a server until it says that it is ready."""
CADENCE: Final = 3
"""Seconds of one turn of a model, and so between two looks."""
MAX_TURNS: Final = 1_000
READY: Final = "ready"


def measure(url: str, scale: Scale) -> Iterator[Row]:
    shortened = scale.pick(0.01, 0.001)
    with SyncClient(url) as client:
        tool = inspection_tool(client)
        polled = {delay: _polled(client, tool, delay) for delay in DELAYS}
        waited = {delay: _waited(client, tool, delay * shortened) for delay in DELAYS}
        advised = _advised(client, tool, DELAYS[0] * shortened)
    detail = ", ".join(f"{delay} s: {polled[delay]} looks, {waited[delay]} waits" for delay in DELAYS)
    what = f"turns until an agent sees “{READY}” in a log, waiting; with tail every {CADENCE} s"
    yield Row(what, max(waited.values()), Goal(1), table.number, detail)
    what = "the same of an agent that looks at a log which says nothing, and does what the answer says"
    yield Row(what, advised, Goal(3), table.number)


def _polled(client: SyncClient, tool: Tool, delay: int) -> int:
    """Turns with a look each, by a clock that each turn moves on. The log has a line for each second."""
    with client.live() as out:
        seconds = 0
        for turn in range(1, MAX_TURNS):
            _write(out, "".join(f"second {second}\n" for second in range(seconds, seconds + CADENCE)))
            if seconds <= delay < seconds + CADENCE:
                _write(out, f"{READY}\n")
            seconds += CADENCE
            if READY in tool(out.id, "tail", lines=20)["content"]:
                return turn
    raise AssertionError("never ready")


def _waited(client: SyncClient, tool: Tool, seconds: float) -> int:
    """Turns with a wait each."""
    with client.live() as out:
        _write(out, "starting\n")
        return 1 + _turns_after(out, tool, seconds, {"capture": out.id, "mode": "wait", "pattern": READY})


def _advised(client: SyncClient, tool: Tool, seconds: float) -> int:
    """Turns of an agent that looks until it is told what to call."""
    with client.live() as out:
        _write(out, "starting\n")
        for turn in range(1, MAX_TURNS):
            answer = tool(out.id, "tail")
            if "advice" in answer:
                return turn + 1 + _turns_after(out, tool, seconds, {**answer["next"], "pattern": READY})
    raise AssertionError("no advice")


def _turns_after(out: SyncLiveCapture, tool: Tool, seconds: float, asked: dict[str, Any]) -> int:
    """Turns after a first call that does not find what it waits for. The log says it in so many seconds."""

    def write() -> None:
        time.sleep(seconds)
        _write(out, f"{READY}\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for turn in range(MAX_TURNS):
            answer = tool(**asked)
            if answer["reason"] == "pattern":
                return turn
            asked = answer["next"]
    finally:
        writer.join()
    raise AssertionError("never ready")


def _write(out: SyncLiveCapture, text: str) -> None:
    out.write(text)
    out.flush()
