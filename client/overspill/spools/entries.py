"""What a spool knows of a capture: the entry of one that it keeps, and of one that it has dropped."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from overspill import wire

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Instant: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""A damaged entry may have any number and any time: it is passed over."""


class Spooled(Struct, frozen=True, kw_only=True):
    """The entry of a spooled capture. `size` is bytes.

    `reason` says why it is here, `refused` why the service will never take it. `path` is where the agent
    finds it in a workspace. `traceparent` is the span in which it spilled. If the service has a beginning of
    it as a live capture, `producer` is the word of who produced that. `failures` uploads of it have failed;
    the next one is due at `next_try`.
    """

    id: str
    size: Count
    lines: Count
    sha256: str
    session: str
    call_id: str
    tool: str
    status: str
    content_type: str
    ttl: int | None
    created: Instant
    expires: Instant
    url: str
    reason: str
    refused: str = ""
    path: str = ""
    labels: dict[str, str] = {}
    traceparent: str = ""
    producer: str = ""
    failures: Count = 0
    next_try: Instant | None = None


class Dropped(Struct, frozen=True, kw_only=True):
    """A capture that was removed without an upload, and why."""

    id: str
    call_id: str
    session: str
    size: Count
    dropped: Instant
    reason: str


def is_of(entry: Spooled | Dropped, call_id: str, session: str | None) -> bool:
    """Return whether a capture is of a tool call in a session; None is any session."""
    return entry.call_id == wire.fit(call_id) and (session is None or entry.session == wire.fit(session))
