"""A followed capture as server-sent events (HTML Living Standard, section 9.2).

event: output
id: the offset behind it
data: FollowedOutput as JSON
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from overspill import wire

from overspill_service.store_format.frames import CUT_BYTES, incomplete_character

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill_service.catalog.records import Entry

KEEP_ALIVE: Final = b": the capture is live\n\n"
"""A comment."""
EVENT_BYTES: Final = 64 * 1024
"""Bytes of content in one event, at most."""


class Event(NamedTuple):
    """Content from `offset` up to `next_offset`, and its bytes on the wire."""

    offset: int
    next_offset: int
    encoded: bytes


def output(offset: int, content: bytes) -> Event:
    """Return the event of some content. Bytes that are not UTF-8 are replaced."""
    end = offset + len(content)
    shown = wire.FollowedOutput(offset=offset, next_offset=end, content=content.decode("utf-8", "replace"))
    encoded = b"event: output\nid: %d\ndata: %b\n\n" % (end, msgspec.json.encode(shown))
    return Event(offset, end, encoded)


def end(entry: Entry) -> bytes:
    """Return the last event."""
    shown = wire.FollowedEnd(
        state=entry.state,
        size=entry.size,
        status=entry.status,
        exit_code=entry.exit_code,
        gap=entry.gap,
    )
    return b"event: end\nid: %d\ndata: %b\n\n" % (entry.size, msgspec.json.encode(shown))


def pieces(content: bytes) -> Iterator[bytes]:
    """Yield the content in pieces of at most `EVENT_BYTES` that cut no character."""
    start = 0
    while start < len(content):
        piece = content[start : start + EVENT_BYTES]
        if start + len(piece) < len(content):
            piece = piece[: whole_characters(piece) or len(piece)]
        yield piece
        start += len(piece)


def whole_characters(content: bytes) -> int:
    """Return how many bytes of the content come before a character that is cut at its end."""
    return len(content) - incomplete_character(content[-CUT_BYTES:])
