"""The readers of a capture that a catalog keeps beside its entry: the few who have read it last.

In Redis a script does the same as `noted`. Both pack readers with msgpack, each as an array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct
from overspill import wire

from overspill_service.catalog.records import instant

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES: Final = 1024
"""The most bytes of a capture's readers. Each counts as the bytes of its name and `READER_BYTES`."""
READER_BYTES: Final = 24
KEY_BYTES: Final = 150
"""About the bytes that Redis needs for the readers of one capture beside `MAX_BYTES`."""


class Reader(Struct, frozen=True, array_like=True):
    """One reader of a capture. Instants are seconds since the epoch."""

    name: str
    on_page: bool
    first: float
    last: float

    def to_wire(self) -> wire.Reader:
        return wire.Reader(
            name=self.name,
            on_page=self.on_page,
            first_read=instant(self.first),
            last_read=instant(self.last),
        )


class ReadNote(NamedTuple):
    """Says that somebody has read a capture."""

    capture: str
    upload: str
    name: str
    on_page: bool
    at: float


_readers: Final = msgspec.msgpack.Decoder(list[Reader])


def encode(readers: Sequence[Reader]) -> bytes:
    return msgspec.msgpack.encode(readers)


def decode(value: bytes | None) -> list[Reader]:
    """Return the readers in a stored value; none if it cannot be decoded: the next note replaces it."""
    try:
        return [] if value is None else _readers.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def noted(readers: Sequence[Reader], note: ReadNote) -> list[Reader]:
    """Add a note to the readers. Return them, the latest first. The earliest may be dropped."""
    first = last = note.at
    latest, size = [], 0
    for each in readers:
        if (each.name, each.on_page) == (note.name, note.on_page):
            first, last = min(first, each.first), max(last, each.last)
        else:
            latest.append(each)
    latest.append(Reader(note.name, note.on_page, first, last))
    latest.sort(key=lambda each: each.last, reverse=True)
    for number, each in enumerate(latest):
        size += len(each.name.encode()) + READER_BYTES
        if number == wire.MAX_READERS or size > MAX_BYTES:
            return latest[:number]
    return latest
