"""Compare expiries with the object store, because an older catalog may have missed a change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overspill_service.archive.recovery.entries import captures_in
from overspill_service.catalog.records import HELD_UNTIL
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.recovery.entries import CaptureFound
    from overspill_service.catalog.records import Entry

CONCURRENCY: Final = 16
"""Captures whose objects are listed at the same time."""


async def is_expired(archive: Archive, entry: Entry) -> bool:
    """Return whether the capture has expired.

    If the catalog may have missed a change, ask the objects first.
    """
    return (await with_confirmed_expiry(archive, entry)).is_expired(archive.clock())


async def with_confirmed_expiry(archive: Archive, entry: Entry) -> Entry:
    """Return the entry. If it seems expired and the catalog may have missed a change, correct its expiry."""
    if not entry.is_expired(archive.clock()):
        return entry
    (checked,) = await with_confirmed_expiries(archive, [entry])
    return checked


async def with_confirmed_expiries(archive: Archive, entries: list[Entry]) -> list[Entry]:
    """Return the entries, with expiries corrected where the catalog may have missed a change."""
    if await archive.catalog.is_settled():
        return entries
    return await fan_out(partial(with_corrected_expiry, archive), entries, concurrency=CONCURRENCY)


async def with_known_expiry(archive: Archive, entry: Entry) -> Entry:
    """Return the entry with the expiry that a change of it starts from, in an older catalog too."""
    is_settled = await archive.catalog.is_settled()
    return entry if is_settled else await with_corrected_expiry(archive, entry)


async def with_corrected_expiry(archive: Archive, entry: Entry) -> Entry:
    """Return the entry with the expiry that its objects have, and write that to the catalog too.

    A change writes its marker before the catalog. So either this sees the marker, or the catalog is changed
    after this.
    """
    prefix = object_keys.capture_prefix(entry.tenant, entry.id)
    async for found in captures_in(archive, prefix):
        newer = newer_marker(found, entry)
        if newer is None:
            return entry
        expires, key = newer
        amended = await archive.catalog.amend(entry, expires=expires, marker=key)
        if amended is not None:
            return await with_corrected_expiry(archive, amended)
    return entry


def newer_marker(found: CaptureFound, entry: Entry) -> tuple[float, str] | None:
    """Return the expiry and key of a marker that the entry does not have yet, or None."""
    marker = found.marker_of(entry.upload)
    if marker is None or object_keys.revision_of(marker[1]) <= object_keys.revision_of(entry.marker):
        return None
    return marker


async def hold_as_others(archive: Archive, found: CaptureFound, entry: Entry) -> None:
    """Put a capture on hold if another upload of it is: a catalog that was just lost let it be stored twice.

    Not if the entry's own expiry was changed later.
    """
    markers = [each for upload in found.uploads if (each := found.marker_of(upload.name))]
    expires, key = max(markers, key=_revision, default=(0.0, ""))
    latest = object_keys.revision_of(key)
    if expires < HELD_UNTIL or latest <= object_keys.revision_of(entry.marker):
        return
    marker = object_keys.marker_key(entry.tenant, entry.id, entry.upload, HELD_UNTIL, latest + 1)
    await archive.store.put(marker, [object_keys.MARKER])
    await archive.catalog.amend(entry, expires=HELD_UNTIL, marker=marker)


def _revision(marker: tuple[float, str]) -> int:
    return object_keys.revision_of(marker[1])
