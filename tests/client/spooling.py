"""Spills to keep in a spool, and a clock that stands until it is moved."""

from __future__ import annotations

from typing import Final

from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.shapes.content import BinaryShape, TextShape
from overspill.transfer.store_request import Origin, StoreRequest

URL: Final = "http://service.example"
NOON: Final = 1_780_000_000.0


class Clock:
    """Seconds since the epoch."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def spilled(
    text: str | bytes,
    call_id: str = "call_1",
    *,
    session: str = "s",
    tool: str = "build",
    ttl: int | None = None,
    wait: float = 1.0,
) -> StoreRequest:
    content = TextShape(text) if isinstance(text, str) else BinaryShape(text)
    return Spill.of(content, Policy(ttl=ttl, wait=wait), Origin(tool, call_id, session, "exit 1")).request
