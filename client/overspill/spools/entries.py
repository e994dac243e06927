"""The entries of a spool: for a capture that it keeps, and for one that it has dropped."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct, structs

from overspill import wire
from overspill.text.body import FileBody
from overspill.text.encoding import bytes_of
from overspill.text.measure import extent_of

if TYPE_CHECKING:
    from overspill.live.ports import Description
    from overspill.spools.store_request import StoreRequest
    from overspill.text.body import Body

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Instant: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""The numbers and times of an entry. A damaged entry may have any others, and is skipped."""


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


class Digested(NamedTuple):
    """The facts about bytes that are kept: their number, their lines, and their SHA-256 (32 bytes)."""

    size: int
    lines: int
    sha256: bytes

    @classmethod
    def of(cls, body: Body) -> Digested:
        """Measure a body. Raises `OSError` if its file cannot be read."""
        digest = body.sha256 if isinstance(body, FileBody) else hashlib.sha256(bytes_of(body)).digest()
        extent = extent_of(body)
        return cls(extent.size, extent.lines, digest)


def new_entry(
    description: Description, digested: Digested, now: datetime, *, url: str, reason: str, producer: str = ""
) -> Spooled:
    """Return the entry of an output that is kept `now`, because the service at `url` does not have it."""
    return Spooled(
        id=description.id,
        size=digested.size,
        lines=digested.lines,
        sha256=digested.sha256.hex(),
        session=wire.fit(description.session),
        call_id=wire.fit(description.call_id),
        tool=wire.fit(description.tool),
        status=wire.fit(description.status),
        content_type=description.content_type,
        ttl=description.ttl,
        created=now,
        expires=now + timedelta(seconds=wire.DEFAULT_TTL if description.ttl is None else description.ttl),
        url=url,
        reason=reason,
        labels=dict(description.labels),
        producer=producer,
    )


def output_entry(request: StoreRequest, now: datetime, *, url: str, reason: str) -> Spooled:
    """Return the entry of an output that a guard keeps."""
    origin, digested = request.origin, Digested(request.size, request.lines, request.sha256)
    producer = "" if origin.live is None else origin.live.producer
    entry = new_entry(request.description, digested, now, url=url, reason=reason, producer=producer)
    return structs.replace(entry, traceparent=origin.traceparent)
