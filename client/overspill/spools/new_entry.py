"""The entry of what the spool is about to keep."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from overspill import wire
from overspill.spools.entries import Spooled
from overspill.text.body import FileBody
from overspill.text.encoding import bytes_of
from overspill.text.measure import extent_of

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.live.ports import Description, WholeStream
    from overspill.spools.store_request import StoreRequest
    from overspill.text.body import Body


class Digested(NamedTuple):
    """What is known of bytes that are kept: how many, in how many lines, and their SHA-256 (32 bytes)."""

    size: int
    lines: int
    sha256: bytes

    @classmethod
    def of(cls, body: Body) -> Digested:
        """Measure a body. Raises `OSError` if its file cannot be read."""
        digest = body.sha256 if isinstance(body, FileBody) else hashlib.sha256(bytes_of(body)).digest()
        return cls(*extent_of(body), digest)


def new_entry(
    description: Description, digested: Digested, now: datetime, *, url: str, reason: str
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
    )


def output_entry(request: StoreRequest, now: datetime, *, url: str, reason: str) -> Spooled:
    """Return the entry of an output that a guard keeps."""
    origin, digested = request.origin, Digested(request.size, request.lines, request.sha256)
    entry = new_entry(request.description, digested, now, url=url, reason=reason)
    producer = "" if origin.live is None else origin.live.producer
    return structs.replace(entry, traceparent=origin.traceparent, producer=producer)


def stream_entry(stream: WholeStream, now: datetime, url: str) -> Spooled:
    """Return the entry of a stream that the service could not take as it came. It keeps its id."""
    entry = new_entry(stream.description, Digested.of(stream.body), now, url=url, reason=stream.reason)
    return structs.replace(entry, producer=stream.producer)
