"""What the spool notes of a stream that the service could not take as it came."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.spools.folder import Spooled
from overspill.text.body import FileBody
from overspill.text.measure import extent_of

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.live.ports import WholeStream

BEGUN_LABEL: Final = "overspill.begun"
"""The label of a stream whose beginning the service has too: under this handle, as a partial capture."""


def content_of(stream: WholeStream) -> bytes:
    """Return the bytes of a stream that is in memory."""
    body = stream.body
    assert not isinstance(body, FileBody)
    return body.encode() if isinstance(body, str) else body


def stream_entry(stream: WholeStream, now: datetime, url: str) -> Spooled:
    """Return the entry of a stream that is kept `now`. It has the stream's own id if that is free."""
    told, body = stream.description, stream.body
    sha256 = body.sha256 if isinstance(body, FileBody) else hashlib.sha256(content_of(stream)).digest()
    size, lines = extent_of(body)
    labels = dict(told.labels)
    if stream.exit_code is not None:
        labels[wire.EXIT_CODE_LABEL] = str(stream.exit_code)
    if stream.is_begun:
        labels[BEGUN_LABEL] = told.id
    return Spooled(
        id=wire.capture_id(told.session, told.call_id, sha256) if stream.is_begun else told.id,
        size=size,
        lines=lines,
        sha256=sha256.hex(),
        session=wire.fit(told.session),
        call_id=wire.fit(told.call_id),
        tool=wire.fit(told.tool),
        status=wire.fit(stream.status),
        content_type=told.content_type,
        ttl=told.ttl,
        created=now,
        expires=now + timedelta(seconds=wire.DEFAULT_TTL if told.ttl is None else told.ttl),
        url=url,
        reason=stream.reason,
        labels=labels,
    )
