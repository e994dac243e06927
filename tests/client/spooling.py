"""Spills to keep in a spool, and a clock that stands until it is moved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.execution.waiting import result, wait_blocking
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.shapes.single_values import BinaryShape, TextShape
from overspill.spools.store_request import Origin, StoreRequest

if TYPE_CHECKING:
    from overspill.delivery.storage import Storage
    from overspill.execution.waiting import Reply
    from overspill.previews.notice_facts import StoreResult

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


def put_sync(storage: Storage, request: StoreRequest) -> StoreResult:
    """What becomes of an output that code without an event loop stores, as a guard does."""
    reply = _begun(storage, request)
    wait_blocking(reply)
    return reply.result()


async def put(storage: Storage, request: StoreRequest) -> StoreResult:
    """As `put_sync`, for code on an event loop."""
    return await result(_begun(storage, request))


def _begun(storage: Storage, request: StoreRequest) -> Reply[StoreResult]:
    return storage.begin(request.origin.session, request.size, partial(storage.put, request))
