"""Entries whose objects are gone: a catalog that fell back to an older state has them again.

A rebuild notes every upload that the object store lists, then goes through the catalog page by page and
drops what was not listed and is not there either when asked for by its key.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.records import Query, Tombstone
from overspill_service.resources.tasks import fan_out

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

PAGE: Final = 500
CONCURRENCY: Final = 16
"""Entries whose objects are asked for at the same time."""
FILTER_BITS: Final = 1 << 27
HASHES: Final = 4


class UploadFilter:
    """The uploads that a listing showed, in 16 MiB however many they are: a Bloom filter.

    It never denies one that was added. It affirms one that was not in 1 of a million cases with a million
    uploads, in 1 of 250 with ten million; another listing judges anew, with another salt.
    """

    def __init__(self, salt: bytes) -> None:
        """`salt`: up to 16 bytes."""
        self._salt = salt
        self._bits = bytearray(FILTER_BITS // 8)

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
    """Drop the entries whose objects are gone; yield after every page how many it had.

    An upload that was stored after its place in the listing had passed is found by its key, and stays.
    """
    for tenant in await archive.catalog.tenants():
        cursor: str | None = None
        while True:
            entries, cursor = await archive.catalog.find(tenant, Query(), now=0, limit=PAGE, cursor=cursor)
            suspects = [entry for entry in entries if entry.upload not in listed]
            yield sum(await fan_out(partial(_drop, archive), suspects, concurrency=CONCURRENCY))
            if cursor is None:
                break


async def _drop(archive: Archive, entry: Entry) -> bool:
    """Whether the entry was dropped: its last segment is not there."""
    try:
        await archive.store.read(entry.segment_keys[-1], -1, 1)
    except KeyError:
        return await forget(archive, entry)
    return False


async def forget(archive: Archive, entry: Entry) -> bool:
    """Drop an entry whose objects are gone; false where this upload has none any more.

    No tombstone is kept: should the object appear again, nothing stands in its way.
    """
    tombstone = Tombstone(id=entry.id, reason="deleted", at=archive.clock())
    return await archive.catalog.remove(entry, tombstone, keep=0)
