"""The encoding of records in a catalog, and the order of listings. The same in every adapter.

One value for each capture id: a byte for the kind of record, then msgpack. Listings are ordered by position:

    8 bytes   created, IEEE 754 big-endian: from 1970 on the bytes sort as the numbers do
    n bytes   capture id

A cursor is the position of the last entry of a page, in URL-safe base64.
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

from overspill_service.catalog.key_records import KeyRecord
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.errors import InvalidParameter, RecordDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.catalog.records import Query

ENTRY: Final = b"E"
TOMBSTONE: Final = b"T"
MAX_DAMAGED: Final = 10_000
"""Damaged records that are remembered at once, and the number that is logged at most."""
PAGE_BYTES: Final = 2**20
"""Bytes of JSON of a page's entries, at most. A text of control characters has six times its own bytes."""
LISTED_BYTES: Final = 512
"""Bytes of JSON of an entry without its texts and labels, at most."""
MAX_TOMBSTONES: Final = 10_000
"""Tombstones of one tenant. Beyond them the oldest go, and their captures answer 404."""
NONCE: Final = 8
"""Bytes in a tombstone's value that tell two removals of one capture apart."""

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
    """Return the record in a stored value. Raises `RecordDamaged`."""
    try:
        if value[:1] == ENTRY:
            return _entries.decode(memoryview(value)[1:])
        if value[:1] == TOMBSTONE:
            return _tombstones.decode(memoryview(value)[1 + NONCE :])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged_record("entry of a capture") from error
    raise damaged_record("entry of a capture")


def is_damaged(value: bytes) -> bool:
    try:
        decode(value)
    except RecordDamaged:
        return True
    return False


class Page:
    """The entries of one page: at most `limit`, and at most `PAGE_BYTES` unless it has only one entry."""

    def __init__(self, limit: int) -> None:
        self.entries: list[Entry] = []
        self._limit, self._size = limit, 0

    def add(self, entry: Entry) -> bool:
        """Add the entry if there is room for it. Return whether there was."""
        size = _listed_size(entry)
        if len(self.entries) == self._limit or (self.entries and self._size + size > PAGE_BYTES):
            return False
        self.entries.append(entry)
        self._size += size
        return True


def _listed_size(entry: Entry) -> int:
    """Return about how many bytes an entry has in the answer to a listing, and its index in memory."""
    texts = (
        *(entry.session, entry.call_id, entry.tool, entry.status),
        *(entry.content_type, entry.labels, entry.first_reader),
    )
    return LISTED_BYTES + sum(len(msgspec.json.encode(text)) for text in texts) + len(entry.index or b"")


class SkippedRecords:
    """Captures whose records were skipped because they cannot be decoded. Each is logged once."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()
        self._remembered: dict[tuple[str, str], None] = {}

    def entry(self, tenant: str, capture: str, value: bytes | None) -> Entry | None:
        """Return the entry in a stored value.

        Return None for anything else; a damaged record is remembered.
        """
        try:
            record = None if value is None else decode(value)
        except RecordDamaged as error:
            self._note((tenant, capture), error)
            return None
        return record if isinstance(record, Entry) else None

    def take(self) -> list[tuple[str, str]]:
        """Return the remembered captures, and forget them."""
        taken, self._remembered = [*self._remembered], {}
        return taken

    def _note(self, name: tuple[str, str], error: RecordDamaged) -> None:
        if len(self._remembered) < MAX_DAMAGED:
            self._remembered[name] = None
        if name not in self._logged and len(self._logged) < MAX_DAMAGED:
            self._logged.add(name)
            log.error("skipped %s of tenant %s: %s", name[1], name[0], error)


def decode_key(value: bytes) -> KeyRecord:
    try:
        return _keys.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged_record("API key's record") from error


def decode_keys(values: Iterable[bytes]) -> list[KeyRecord]:
    """Return the keys in stored values, the newest last, without those that cannot be decoded."""
    keys: list[KeyRecord] = []
    for value in values:
        try:
            keys.append(decode_key(value))
        except RecordDamaged as error:
            log.warning("skipped a key: %s", error)
    return sorted(keys, key=lambda key: (key.created, key.hash))


def digest(text: str) -> bytes:
    """Return 16 bytes for a session or call id in keys and indexes. The ids themselves may have kilobytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def position(created: float, capture: str) -> bytes:
    return pack_instant(created) + capture.encode()


def pack_instant(seconds: float) -> bytes:
    """Return an instant as bytes that sort in its order. An instant before 1970 counts as 1970."""
    return _TIME.pack(max(seconds, 0.0))


def instant_of(position: bytes) -> float:
    seconds: float = _TIME.unpack_from(position)[0]
    return seconds


def capture_of(position: bytes) -> str:
    return position[_TIME.size :].decode()


def encode_cursor(position: bytes) -> str:
    return base64.urlsafe_b64encode(position).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[float, str]:
    """Return when the last entry of the page was created, and its id. Raises `InvalidParameter`."""
    try:
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        created, capture = instant_of(raw), capture_of(raw)
    except (binascii.Error, UnicodeError, struct.error) as error:
        raise _wrong_cursor() from error
    if not (0 <= created < float("inf") and wire.CAPTURE_ID.fullmatch(capture)):
        raise _wrong_cursor()
    return created, capture


def matches(entry: Entry, query: Query, now: float) -> bool:
    """Return whether the query selects the entry. It never selects an expired one."""
    return (
        not entry.is_expired(now)
        and query.session in (None, entry.session)
        and query.call_id in (None, entry.call_id)
        and query.tool in (None, entry.tool)
        and query.state in (None, entry.state)
        and (query.since is None or query.since <= entry.created)
        and (query.until is None or entry.created < query.until)
    )


def damaged_record(label: str) -> RecordDamaged:
    return RecordDamaged(
        f"the catalog holds an {label} that cannot be decoded: it is damaged or from a newer version; "
        "empty the catalog to have it rebuilt from the object store"
    )


def _wrong_cursor() -> InvalidParameter:
    return InvalidParameter("cursor is not one that a listing returned; leave it out to begin at the newest")
