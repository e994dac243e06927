"""How entries and tombstones look inside a catalog, and how listings are ordered; the same in every adapter.

One value per capture id: a byte that names its kind, then msgpack. An entry's position orders listings:

    8 bytes   created, IEEE 754 big-endian (of instants from 1970 on the bytes sort as the numbers do)
    n bytes   capture id

A cursor is the position of the last entry that was shown, in URL-safe base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import struct
from typing import TYPE_CHECKING, Final

import msgspec
from overspill import wire

from overspill_service.catalog.records import Entry, KeyRecord, Tombstone
from overspill_service.errors import InvalidParameter, RecordDamaged

if TYPE_CHECKING:
    from overspill_service.catalog.records import Query

ENTRY: Final = b"E"
TOMBSTONE: Final = b"T"
MAX_DAMAGED: Final = 10_000
"""Damaged records that are remembered at once, and that are logged at all."""
PAGE_BYTES: Final = 2**20
"""Bytes of entries that a page has: one entry may have up to 170 KB of labels and names."""
FIXED_BYTES: Final = 256
"""Bytes of an entry's other fields."""
SEGMENT_BYTES: Final = 24
"""Bytes of an entry for each segment."""
NONCE: Final = 8
"""Bytes of a tombstone's value that tell one removal from any other."""

log = logging.getLogger(__name__)
_TIME: Final = struct.Struct(">d")
_encoder: Final = msgspec.msgpack.Encoder()
_entries: Final = msgspec.msgpack.Decoder(Entry)
_tombstones: Final = msgspec.msgpack.Decoder(Tombstone)
_keys: Final = msgspec.msgpack.Decoder(KeyRecord)


def encode_entry(entry: Entry) -> bytes:
    return ENTRY + _encoder.encode(entry)


def encode_tombstone(tombstone: Tombstone, nonce: bytes) -> bytes:
    return TOMBSTONE + nonce + _encoder.encode(tombstone)


def encode_key(key: KeyRecord) -> bytes:
    return _encoder.encode(key)


def decode(value: bytes) -> Entry | Tombstone:
    """The record behind a stored value. Raises `RecordDamaged`."""
    try:
        if value[:1] == ENTRY:
            return _entries.decode(memoryview(value)[1:])
        if value[:1] == TOMBSTONE:
            return _tombstones.decode(memoryview(value)[1 + NONCE :])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged("entry of a capture") from error
    raise _damaged("entry of a capture")


def is_damaged(value: bytes) -> bool:
    try:
        decode(value)
    except RecordDamaged:
        return True
    return False


def weight(entry: Entry) -> int:
    """About how many bytes an entry takes in the catalog."""
    texts = entry.session, entry.call_id, entry.tool, entry.status, entry.content_type
    labels = sum(len(name) + len(value) for name, value in entry.labels.items())
    return (
        FIXED_BYTES
        + sum(map(len, texts))
        + labels
        + len(entry.index or b"")
        + SEGMENT_BYTES * len(entry.segments)
    )


class Page:
    """Entries that a catalog gives at once: at most `limit`, and `PAGE_BYTES` bytes but for the first."""

    def __init__(self, limit: int) -> None:
        self.entries: list[Entry] = []
        self._limit, self._size = limit, 0

    def add(self, entry: Entry) -> bool:
        """Whether there was room for one more."""
        size = weight(entry)
        if len(self.entries) == self._limit or (self.entries and self._size + size > PAGE_BYTES):
            return False
        self.entries.append(entry)
        self._size += size
        return True


class Damaged:
    """Captures whose records were passed over because they cannot be decoded; each is logged once."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()
        self._remembered: dict[tuple[str, str], None] = {}

    def entry(self, tenant: str, capture: str, value: bytes | None) -> Entry | None:
        """The entry behind a stored value; None where that is none, or damaged, which is remembered."""
        try:
            record = None if value is None else decode(value)
        except RecordDamaged as error:
            self._note((tenant, capture), error)
            return None
        return record if isinstance(record, Entry) else None

    def take(self) -> list[tuple[str, str]]:
        """Those that are remembered, which are then forgotten."""
        taken, self._remembered = [*self._remembered], {}
        return taken

    def _note(self, name: tuple[str, str], error: RecordDamaged) -> None:
        if len(self._remembered) < MAX_DAMAGED:
            self._remembered[name] = None
        if name not in self._logged and len(self._logged) < MAX_DAMAGED:
            self._logged.add(name)
            log.error("%s of tenant %s is passed over: %s", name[1], name[0], error)


def decode_key(value: bytes) -> KeyRecord:
    try:
        return _keys.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged("API key's record") from error


def digest(text: str) -> bytes:
    """16 bytes that stand for a session or call id in keys and indexes; those can be kilobytes long."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def position(created: float, capture: str) -> bytes:
    return pack_instant(created) + capture.encode()


def pack_instant(seconds: float) -> bytes:
    """An instant as bytes that sort; before 1970 counts as 1970."""
    return _TIME.pack(max(seconds, 0.0))


def instant_of(position: bytes) -> float:
    seconds: float = _TIME.unpack_from(position)[0]
    return seconds


def capture_of(position: bytes) -> str:
    return position[_TIME.size :].decode()


def encode_cursor(position: bytes) -> str:
    return base64.urlsafe_b64encode(position).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[float, str]:
    """When the last entry shown was created, and its id. Raises `InvalidParameter`."""
    try:
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        created, capture = instant_of(raw), capture_of(raw)
    except (binascii.Error, UnicodeError, struct.error) as error:
        raise _wrong_cursor() from error
    if not (0 <= created < float("inf") and wire.CAPTURE_ID.fullmatch(capture)):
        raise _wrong_cursor()
    return created, capture


def matches(entry: Entry, query: Query, now: float) -> bool:
    """Whether an unexpired entry is what the query selects."""
    return (
        not entry.is_expired(now)
        and query.session in (None, entry.session)
        and query.call_id in (None, entry.call_id)
        and query.tool in (None, entry.tool)
        and query.state in (None, entry.state)
        and (query.since is None or query.since <= entry.created)
        and (query.until is None or entry.created < query.until)
    )


def _damaged(what: str) -> RecordDamaged:
    return RecordDamaged(
        f"the catalog holds an {what} that cannot be decoded: it is damaged or from a newer version; "
        "empty the catalog to have it rebuilt from the object store"
    )


def _wrong_cursor() -> InvalidParameter:
    return InvalidParameter("cursor is not one that a listing returned; leave it out to begin at the newest")
