"""Removals in the object store: records of unfinished ones, and markers of removed live captures.

A record lists the keys of the objects to delete. A marker stays for a while, because an older copy of the
catalog may have bytes that were accepted before a live capture had any object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.archive.archive import Archive
    from overspill_service.objects import StoredObject

CONCURRENCY: Final = 16
"""Markers that are written at the same time."""


async def recorded_keys(archive: Archive, stored: StoredObject) -> dict[str, object_keys.ObjectKey]:
    """Return the recorded keys that are of the record's own tenant. There are none if the record is gone."""
    try:
        data = await archive.store.read(stored.key, 0, stored.size)
    except KeyError:
        return {}
    lines = data.decode("ascii", "replace").split("\n")
    tenant = stored.key.split("/")[1]
    keys = ((line, object_keys.parse(line)) for line in lines)
    return {line: key for line, key in keys if key is not None and key.tenant == tenant}


async def removed_uploads(archive: Archive, prefix: str = object_keys.REMOVALS) -> frozenset[str]:
    """Return the uploads whose removal is recorded and not finished. None of them may be read again."""
    found: set[str] = set()
    async for stored in archive.store.list(prefix):
        found.update(key.upload for key in (await recorded_keys(archive, stored)).values())
    return frozenset(found)


async def listed_keys(archive: Archive, tenant: str, capture: str) -> set[str]:
    """Return the keys of a capture's objects, without markers of removals: they stay."""
    prefix = object_keys.capture_prefix(tenant, capture)
    keys = [(stored.key, object_keys.parse(stored.key)) async for stored in archive.store.list(prefix)]
    return {text for text, key in keys if key is None or not key.is_removal}


async def put_markers(archive: Archive, keys: Iterable[str]) -> None:
    """Write the markers of removals."""

    async def one(key: str) -> None:
        await archive.store.put(key, [object_keys.MARKER])

    await fan_out(one, keys, concurrency=CONCURRENCY)
