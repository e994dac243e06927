"""Drop entries whose objects are gone. A catalog that went back to an older state has such entries.

A rebuild remembers every upload that the object store lists. Then it reads the catalog page by page, and
drops an entry if its upload was not listed and its last segment cannot be read. A live capture may have no
segment yet. Its entry is dropped if its expiry marker cannot be read. Without a marker, it is dropped if it
has expired, or if its producer was silent for so long that the marker of a removal may be gone.
"""

from __future__ import annotations

import hashlib
import mmap
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.archive.removal import remove_without_record
from overspill_service.archive.removal_audit import note_removed
from overspill_service.archive.retention import SILENT_SECONDS
from overspill_service.catalog.live import NO_BYTES
from overspill_service.catalog.records import Query, Tombstone
from overspill_service.resources.tasks import fan_out

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

PAGE: Final = 500
CONCURRENCY: Final = 16
"""Entries whose objects are looked for at the same time."""
FILTER_BITS: Final = 1 << 27
HASHES: Final = 4


class UploadFilter:
    """A Bloom filter of the uploads in a listing: 16 MiB at most, however many uploads there are.

    It contains every upload that was added. It wrongly contains another one with a probability of 1 in a
    million for a million uploads, and of 1 in 250 for ten million. Another salt gives other errors.
    """

    def __init__(self, salt: bytes) -> None:
        """`salt` has up to 16 bytes."""
        self._salt = salt
        self._bits = mmap.mmap(-1, FILTER_BITS // 8)  # a page takes memory once a bit of it is set

    def add(self, upload: str) -> None:
        for bit in self._bit_positions(upload):
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def __contains__(self, upload: str) -> bool:
        return all(self._bits[bit >> 3] & 1 << (bit & 7) for bit in self._bit_positions(upload))

    def _bit_positions(self, upload: str) -> Iterator[int]:
        digest = hashlib.blake2b(upload.encode(), digest_size=4 * HASHES, salt=self._salt).digest()
        for start in range(0, len(digest), 4):
            yield int.from_bytes(digest[start : start + 4], "little") % FILTER_BITS


async def drop_stale(archive: Archive, listed: UploadFilter) -> AsyncGenerator[int, None]:
    """Drop the entries whose objects are gone. After every page yield how many it had.

    The listing may have missed an upload that was stored while it ran. Its last segment can be read, so it
    stays.
    """
    for tenant in await archive.catalog.tenants():
        cursor: str | None = None
        while True:
            entries, cursor = await archive.catalog.find(tenant, Query(), now=0, limit=PAGE, cursor=cursor)
            suspects = [
                each for each in entries if (each.segments or each.is_live) and each.upload not in listed
            ]
            yield sum(await fan_out(partial(drop_if_stale, archive), suspects, concurrency=CONCURRENCY))
            if cursor is None:
                break


async def drop_if_stale(archive: Archive, entry: Entry) -> bool:
    """Drop an entry without listed objects, if it is out of date. Return whether it was dropped."""
    if not entry.keys and entry.is_expired(archive.clock()):
        return (await remove_without_record(archive, [entry], "expired")).captures > 0
    if not await (is_gone if entry.keys else _is_silent)(archive, entry):
        return False
    is_dropped = await drop_entry(archive, entry, entry.keys)
    await note_removed(archive, [entry] if is_dropped else [], "unreadable")
    return is_dropped


async def _is_silent(archive: Archive, entry: Entry) -> bool:
    """Return whether the producer of a live capture was last heard of too long ago."""
    record = await archive.catalog.live(entry.tenant, entry.id, since=NO_BYTES)
    heard = entry.created if record is None else record.active
    return archive.clock() - heard > SILENT_SECONDS


async def is_gone(archive: Archive, entry: Entry) -> bool:
    """Return whether the last segment of an entry is gone, or the marker of one without segments."""
    key = entry.segment_keys[-1] if entry.segments else entry.keys[-1]
    try:
        await archive.store.read(key, -1, 1)
    except KeyError:
        return True
    return False


async def drop_entry(archive: Archive, entry: Entry, keys: Sequence[str] = ()) -> bool:
    """Drop an entry whose objects are gone. Return False if the upload has no entry any more.

    With `keys`, return False also if the entry has other objects by now. No tombstone is kept, so the capture
    can be recovered if its objects appear again.
    """
    tombstone = Tombstone(id=entry.id, reason="unreadable", at=archive.clock(), keys=[*keys])
    is_dropped = await archive.catalog.remove(entry, tombstone, keep=0)
    if is_dropped and entry.is_live:
        await archive.catalog.forget_live(entry.tenant, entry.id)
        await archive.catalog.free(entry.tenant, entry.upload)
    return is_dropped
