"""Remove captures for good, whichever step is interrupted and whatever the catalog loses.

    record in the object store ──► tombstones in the catalog ──► markers of captures that were live
        ──► objects deleted ──► record deleted

The record lists the objects and markers. So a removal that a client may have seen survives the loss of the
catalog, and any process that finds the record finishes it. Expired captures need no record, because their
objects hold the expiry.

Captures on hold stay. The objects show the hold, because a catalog that is older than the hold does not know
it.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from overspill import wire

from overspill_service.archive import retention
from overspill_service.archive.removal_audit import note_removed
from overspill_service.archive.removal_records import listed_keys, put_markers, recorded_keys
from overspill_service.catalog.records import HELD_UNTIL, Entry, Tombstone
from overspill_service.errors import CatalogUnavailable, RecordDamaged, ServiceError, StoreUnavailable
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.objects import StoredObject

CONCURRENCY: Final = 16
"""Captures that are listed at the same time."""
CONCURRENT_TOMBSTONES: Final = 256
"""Steps of the catalog at the same time: as many as any adapter combines."""
ROUNDS: Final = 50
"""How often a removal starts again because a capture has changed meanwhile, as live ones do."""
REMOVAL_SECONDS: Final = 60.0
"""Age of a record in seconds after which no request can still be working on its removal."""

log = logging.getLogger(__name__)


class PendingRemoval(Struct, frozen=True):
    """A capture to remove, and the keys of all its objects."""

    entry: Entry
    keys: list[str]
    marker: str = ""
    """The key of the marker that the removal leaves, if it leaves one."""
    hold: str = ""
    """The marker of the hold that the capture is on."""


async def erase(archive: Archive, tenant: str, entries: Iterable[Entry]) -> wire.Removed:
    """Remove captures, with every upload of their ids. Return how many this call removed, and left on hold.

    Once it returns, neither the loss of the catalog nor an older copy of it brings a capture back. Raises
    `CatalogUnavailable` if captures change again and again before they can be removed.
    """
    removed, pending = wire.Removed(captures=0, stored_size=0), list(entries)
    for _ in range(ROUNDS):
        step, missed = await _erase_once(archive, tenant, pending)
        removed = sum_of(removed, step)
        current = await fan_out(partial(_current, archive), missed, concurrency=CONCURRENCY)
        pending = [entry for entry in current if entry is not None]
        if not pending:
            return removed
    raise CatalogUnavailable("captures change faster than they can be removed; ask again")


async def _current(archive: Archive, entry: Entry) -> Entry | None:
    record = await archive.catalog.get(entry.tenant, entry.id)
    return record if isinstance(record, Entry) else None


async def _erase_once(
    archive: Archive, tenant: str, entries: Iterable[Entry]
) -> tuple[wire.Removed, list[Entry]]:
    """Remove captures. Return also those that changed after their objects were listed, or are gone."""
    listed = await fan_out(partial(_pending_removal, archive), entries, concurrency=CONCURRENCY)
    on_hold = [removal for removal in listed if removal.hold]
    await fan_out(partial(_tell_of_hold, archive), on_hold, concurrency=CONCURRENCY)
    free = [removal for removal in listed if not removal.hold]
    replaced = await _erase(archive, tenant, free)
    gone = {removal.entry.id for removal in replaced}
    size = sum(removal.entry.stored_size for removal in replaced)
    missed = [removal.entry for removal in free if removal.entry.id not in gone]
    return wire.Removed(captures=len(replaced), stored_size=size, held=len(on_hold)), missed


async def _erase(
    archive: Archive, tenant: str, removals: Sequence[PendingRemoval]
) -> Sequence[PendingRemoval]:
    """Remove and return captures that are unchanged since they were listed, or lost by the catalog."""
    if not removals:
        return []
    keys = [*chain.from_iterable(removal.keys for removal in removals), *_markers(removals)]
    record = object_keys.new_removal(tenant)
    await archive.store.put(record, ["\n".join(keys).encode()])
    replaced = await put_tombstones(archive, removals, "deleted")
    await delete_objects(archive, replaced)
    if len(replaced) < len(removals):  # entries that the catalog has lost meanwhile have objects too
        recorded = {key: parsed for key in keys if (parsed := object_keys.parse(key))}
        await _delete_recorded(archive, recorded, is_complete=True)  # what it still has is removed later
    await archive.store.delete([record])
    return replaced


async def remove_without_record(archive: Archive, entries: Iterable[Entry], reason: str) -> wire.Removed:
    """Remove uploads that can no longer be read, without a record in the object store."""
    return await delete_objects(
        archive, await put_tombstones(archive, [*map(removal_without_record, entries)], reason)
    )


def removal_without_record(entry: Entry) -> PendingRemoval:
    """Return the removal of an upload that can no longer be read.

    An expired capture has expired in an older catalog too, unless its expiry was changed since.
    """
    return PendingRemoval(entry, entry.keys, (entry.marker and entry.removal_marker) or "")


def _markers(removals: Iterable[PendingRemoval]) -> list[str]:
    return [removal.marker for removal in removals if removal.marker]


async def put_tombstones(
    archive: Archive, removals: Sequence[PendingRemoval], reason: str
) -> list[PendingRemoval]:
    """Replace entries by tombstones. Return the removals whose entries were still there.

    An expired capture stays if its expiry was extended meanwhile, a deleted one if it has other objects than
    are known here.
    """
    now = archive.clock()

    async def one(removal: PendingRemoval) -> bool:
        entry = removal.entry
        at = entry.expires if reason == "expired" else now
        tombstone = Tombstone(id=entry.id, reason=reason, at=at, keys=removal.keys, marker=removal.marker)
        is_replaced = await archive.catalog.remove(entry, tombstone, keep=retention.TOMBSTONE_TTL)
        if is_replaced and entry.is_live:
            await archive.catalog.forget_live(entry.tenant, entry.id)
            await archive.catalog.free(entry.tenant, entry.upload)
        return is_replaced

    replaced = await fan_out(one, removals, concurrency=CONCURRENT_TOMBSTONES)
    gone = [removal for removal, is_replaced in zip(removals, replaced, strict=True) if is_replaced]
    await note_removed(archive, [removal.entry for removal in gone], reason)
    return gone


async def delete_objects(archive: Archive, removals: Sequence[PendingRemoval]) -> wire.Removed:
    """Delete the objects of captures that have tombstones, with as few requests as possible."""
    for removal in removals:
        archive.maps.discard(removal.entry.upload)
    await put_markers(archive, _markers(removals))
    await archive.store.delete([*chain.from_iterable(removal.keys for removal in removals)])
    return wire.Removed(
        captures=len(removals), stored_size=sum(removal.entry.stored_size for removal in removals)
    )


async def finish_removals(archive: Archive, prefix: str = object_keys.REMOVALS, *, age: float = 0) -> None:
    """Finish the removals that have records older than `age` seconds. Younger ones may still be running.

    One failure does not stop the others. The last failure is raised: `StoreUnavailable`, or `RecordDamaged`
    if the catalog cannot say whether the capture was removed.
    """
    before = await archive.store_time() - age if age else math.inf
    is_complete = await archive.catalog.is_complete()
    failure: ServiceError | None = None
    async for stored in archive.store.list(prefix):
        try:
            if stored.modified <= before:
                await _finish(archive, stored, is_complete=is_complete)
        except (StoreUnavailable, RecordDamaged) as error:
            failure = error
    if failure is not None:
        raise failure


async def _finish(archive: Archive, stored: StoredObject, *, is_complete: bool) -> None:
    recorded = await recorded_keys(archive, stored)
    deleted = await _delete_recorded(archive, recorded, is_complete=is_complete)
    await archive.store.delete([stored.key])
    log.warning("finished a removal that was cut short", extra=fields(objects=deleted))


async def _delete_recorded(
    archive: Archive, recorded: Mapping[str, object_keys.ObjectKey], *, is_complete: bool
) -> int:
    """Delete the recorded objects, except those of uploads that are kept. Return how many were deleted.

    Write the recorded markers first, except those of captures that are kept.
    """
    captures = {(key.tenant, key.capture) for key in recorded.values()}
    held_since = {each: await _held_since(archive, *each, recorded) for each in captures}
    on_hold = {upload for upload in held_since.values() if upload is not None}
    uploads = frozenset(key.upload for key in recorded.values()) - on_hold
    kept_uploads = {
        await _kept_upload(archive, *each, uploads, is_complete=is_complete) for each in captures
    } | on_hold
    markers = {text: key for text, key in recorded.items() if key.is_removal}
    free = {text: key for text, key in markers.items() if held_since[key.tenant, key.capture] is None}
    await _put_recorded_markers(archive, free, is_complete=is_complete)
    keys = [text for text, key in recorded.items() if not key.is_removal and key.upload not in kept_uploads]
    await archive.store.delete(keys)
    return len(keys)


async def _put_recorded_markers(
    archive: Archive, markers: Mapping[str, object_keys.ObjectKey], *, is_complete: bool
) -> None:
    """Write the markers, except those of captures that a complete catalog still has."""
    gone: list[str] = []
    for text, key in markers.items():
        record = await archive.catalog.get(key.tenant, key.capture) if is_complete else None
        if not isinstance(record, Entry) or record.removal_marker != text:
            gone.append(text)
    await put_markers(archive, gone)


async def _held_since(archive: Archive, tenant: str, capture: str, recorded: Container[str]) -> str | None:
    """Return the upload of a capture that was put on hold after its removal was recorded, or None.

    The removal had not reached the catalog, so no client saw it. A hold that the record lists had ended.
    """
    marker = _hold(await listed_keys(archive, tenant, capture))
    found = object_keys.parse(marker)
    return None if found is None or marker in recorded else found.upload


async def _tell_of_hold(archive: Archive, removal: PendingRemoval) -> None:
    """Write a hold that the catalog has missed to the catalog, so that it can be seen and released."""
    entry, marker = removal.entry, object_keys.parse(removal.hold)
    if marker is not None and marker.upload == entry.upload:
        await archive.catalog.amend(entry, expires=HELD_UNTIL, marker=removal.hold)


async def _pending_removal(archive: Archive, entry: Entry) -> PendingRemoval:
    """Return the entry with all objects of its capture.

    A second whole upload of the same id, for example one that was never acknowledged, would bring the capture
    back.
    """
    listed = await listed_keys(archive, entry.tenant, entry.id)
    keys = listed.union(entry.keys)
    return PendingRemoval(entry, sorted(keys), entry.removal_marker or "", _hold(keys))


def sum_of(one: wire.Removed, other: wire.Removed) -> wire.Removed:
    return wire.Removed(
        captures=one.captures + other.captures,
        stored_size=one.stored_size + other.stored_size,
        held=one.held + other.held,
    )


def _hold(keys: Iterable[str]) -> str:
    """Return the marker of the hold that a capture with these objects is on, empty if it is on none.

    The last marker counts, whichever upload it is of: a capture may have been stored twice.
    """
    parsed = ((key, object_keys.parse(key)) for key in keys)
    markers = [
        (each.revision, each.expires, key) for key, each in parsed if each and each.expires is not None
    ]
    _, expires, key = max(markers, default=(0, 0, ""))
    return key if expires >= HELD_UNTIL else ""


async def _kept_upload(
    archive: Archive, tenant: str, capture: str, removed: frozenset[str], *, is_complete: bool
) -> str | None:
    """Return the upload of a capture that a recorded removal must not delete, or None.

    If a complete catalog still has the entry, the removal never reached the catalog, so no client saw it, and
    the same content may have been stored again. The entry of an incomplete catalog is outdated.
    """
    record = await archive.catalog.get(tenant, capture)
    if not isinstance(record, Entry):
        return None
    if is_complete or record.upload not in removed:
        return record.upload
    if await put_tombstones(archive, [PendingRemoval(record, record.keys)], "deleted"):
        return None
    current = await archive.catalog.get(tenant, capture)  # it was put on hold or stored again meanwhile
    return current.upload if isinstance(current, Entry) else None
