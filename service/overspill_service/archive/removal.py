"""Removing captures so that they stay removed, whatever step is cut short and whatever the catalog forgets.

    record in the object store ──► tombstones in the catalog ──► objects deleted ──► record deleted

The record names the objects, so a removal that anybody saw survives the loss of the catalog, and whoever
finds the record finishes it. What has expired needs no record: its objects say so themselves.
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
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.errors import RecordDamaged, ServiceError, StoreUnavailable
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.objects import Stored

CONCURRENCY: Final = 16
"""Captures that are listed at the same time."""
CONCURRENT_TOMBSTONES: Final = 256
"""Steps of the catalog at the same time: as many as either adapter does together."""
REMOVAL_SECONDS: Final = 60.0
"""The age of a record of a removal that no request can still be at."""

log = logging.getLogger(__name__)


class PendingRemoval(Struct, frozen=True):
    """A capture to remove, and the keys of all objects that go with it."""

    entry: Entry
    keys: list[str]


async def erase(archive: Archive, tenant: str, entries: Iterable[Entry]) -> wire.Removed:
    """Remove captures, with every upload of their ids; return how many this call removed.

    Once it returns, neither the loss of the catalog nor an older copy of it brings one back.
    """
    removals = await fan_out(partial(_pending_removal, archive), entries, concurrency=CONCURRENCY)
    keys = [*chain.from_iterable(removal.keys for removal in removals)]
    if not keys:
        return wire.Removed(captures=0, stored_size=0)
    record = object_keys.new_removal(tenant)
    await archive.store.put(record, ["\n".join(keys).encode()])
    replaced = await put_tombstones(archive, removals, "deleted")
    removed = await delete_objects(archive, replaced)
    if len(replaced) < len(removals):  # what the catalog has forgotten meanwhile has to go as well
        recorded = {key: parsed for key in keys if (parsed := object_keys.parse(key))}
        await _delete_recorded(archive, recorded, is_complete=await archive.catalog.is_complete())
    await archive.store.delete([record])
    return removed


async def remove_without_record(archive: Archive, entries: Iterable[Entry], reason: str) -> wire.Removed:
    """Remove uploads that nobody could read any more, without a record."""
    return await delete_objects(
        archive, await put_tombstones(archive, [PendingRemoval(e, e.keys) for e in entries], reason)
    )


async def put_tombstones(
    archive: Archive, removals: Sequence[PendingRemoval], reason: str
) -> list[PendingRemoval]:
    """Put tombstones in the place of entries; return those that were still there.

    An expired capture whose life was prolonged meanwhile stays.
    """
    now = archive.clock()

    async def one(removal: PendingRemoval) -> bool:
        entry = removal.entry
        at = entry.expires if reason == "expired" else now
        tombstone = Tombstone(id=entry.id, reason=reason, at=at, keys=removal.keys)
        return await archive.catalog.remove(entry, tombstone, keep=retention.TOMBSTONE_TTL)

    replaced = await fan_out(one, removals, concurrency=CONCURRENT_TOMBSTONES)
    return [removal for removal, is_replaced in zip(removals, replaced, strict=True) if is_replaced]


async def delete_objects(archive: Archive, removals: Sequence[PendingRemoval]) -> wire.Removed:
    """Delete the objects of hidden captures, as many as possible with one request."""
    for removal in removals:
        archive.maps.forget(removal.entry.upload)
    await archive.store.delete([*chain.from_iterable(removal.keys for removal in removals)])
    return wire.Removed(
        captures=len(removals), stored_size=sum(removal.entry.stored_size for removal in removals)
    )


async def finish_removals(archive: Archive, prefix: str = object_keys.REMOVALS, *, age: float = 0) -> None:
    """Finish what the records of removals name. Those younger than `age` seconds may be under way.

    One that cannot be finished now stops no other. Raises the last failure: `StoreUnavailable`, or
    `RecordDamaged` where the catalog cannot tell whether a removal came to be.
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


async def _finish(archive: Archive, stored: Stored, *, is_complete: bool) -> None:
    recorded = await _recorded_keys(archive, stored)
    deleted = await _delete_recorded(archive, recorded, is_complete=is_complete)
    await archive.store.delete([stored.key])
    log.warning("finished a removal that was cut short", extra=fields(objects=deleted))


async def _delete_recorded(
    archive: Archive, recorded: Mapping[str, object_keys.ObjectKey], *, is_complete: bool
) -> int:
    """Delete the objects that a record names, but those of uploads that are kept; return how many."""
    captures = {(key.tenant, key.capture) for key in recorded.values()}
    uploads = frozenset(key.upload for key in recorded.values())
    kept = {await _kept_upload(archive, *each, uploads, is_complete=is_complete) for each in captures}
    keys = [text for text, key in recorded.items() if key.upload not in kept]
    await archive.store.delete(keys)
    return len(keys)


async def removed_uploads(archive: Archive, prefix: str = object_keys.REMOVALS) -> frozenset[str]:
    """The uploads whose removal is recorded and not finished yet: nothing of them is ever read again."""
    found: set[str] = set()
    async for stored in archive.store.list(prefix):
        found.update(key.upload for key in (await _recorded_keys(archive, stored)).values())
    return frozenset(found)


async def _pending_removal(archive: Archive, entry: Entry) -> PendingRemoval:
    """The entry with all objects of its capture.

    Another whole upload of the same id, such as one that was never acknowledged, would bring it back.
    """
    prefix = object_keys.capture_prefix(entry.tenant, entry.id)
    listed = {stored.key async for stored in archive.store.list(prefix)}
    return PendingRemoval(entry, sorted(listed.union(entry.keys)))


async def _recorded_keys(archive: Archive, stored: Stored) -> dict[str, object_keys.ObjectKey]:
    """The keys of its own tenant that a record names; none where it was deleted meanwhile."""
    try:
        data = await archive.store.read(stored.key, 0, stored.size)
    except KeyError:
        return {}
    lines = data.decode("ascii", "replace").split("\n")
    tenant = stored.key.split("/")[1]
    keys = ((line, object_keys.parse(line)) for line in lines)
    return {line: key for line, key in keys if key is not None and key.tenant == tenant}


async def _kept_upload(
    archive: Archive, tenant: str, capture: str, removed: frozenset[str], *, is_complete: bool
) -> str | None:
    """The upload of a capture that a recorded removal leaves alone.

    A catalog that knows everything and still has the entry was never told of the removal, so nobody saw
    it, and the same content may have been stored again since. An entry in any other catalog is out of date.
    """
    known = await archive.catalog.get(tenant, capture)
    if not isinstance(known, Entry):
        return None
    if not is_complete and known.upload in removed:
        await put_tombstones(archive, [PendingRemoval(known, known.keys)], "deleted")
        return None
    return known.upload
