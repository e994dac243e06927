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
from overspill_service.telemetry.logs import facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.objects import Stored

AT_ONCE: Final = 16
"""Captures that are listed at the same time."""
HIDDEN_AT_ONCE: Final = 256
"""Steps of the catalog at the same time: as many as either adapter does together."""
REMOVAL_SECONDS: Final = 60.0
"""The age of a record of a removal that no request can still be at."""

log = logging.getLogger(__name__)


class Grave(Struct, frozen=True):
    """A capture to remove, and the keys of all objects that go with it."""

    entry: Entry
    keys: list[str]


async def erase(archive: Archive, tenant: str, entries: Iterable[Entry]) -> wire.Removed:
    """Remove captures, with every upload of their ids; return how many this call removed.

    Once it returns, neither the loss of the catalog nor an older copy of it brings one back.
    """
    graves = await fan_out(partial(_grave_of, archive), entries, at_once=AT_ONCE)
    keys = [*chain.from_iterable(grave.keys for grave in graves)]
    if not keys:
        return wire.Removed(captures=0, stored_size=0)
    record = object_keys.new_removal(tenant)
    await archive.store.put(record, ["\n".join(keys).encode()])
    hidden = await hide(archive, graves, "deleted")
    removed = await delete_objects(archive, hidden)
    if len(hidden) < len(graves):  # what the catalog has forgotten meanwhile has to go as well
        named = {key: parsed for key in keys if (parsed := object_keys.parse(key))}
        await _delete_named(archive, named, is_complete=await archive.catalog.is_complete())
    await archive.store.delete([record])
    return removed


async def bury(archive: Archive, entries: Iterable[Entry], reason: str) -> wire.Removed:
    """Remove uploads that nobody could read any more, without a record."""
    return await delete_objects(archive, await hide(archive, [Grave(e, e.keys) for e in entries], reason))


async def hide(archive: Archive, graves: Sequence[Grave], reason: str) -> list[Grave]:
    """Put tombstones in the place of entries; return those that were still there.

    An expired capture whose life was prolonged meanwhile stays.
    """
    now = archive.clock()

    async def one(grave: Grave) -> bool:
        entry = grave.entry
        at = entry.expires if reason == "expired" else now
        tombstone = Tombstone(id=entry.id, reason=reason, at=at, keys=grave.keys)
        return await archive.catalog.remove(entry, tombstone, keep=retention.TOMBSTONE_TTL)

    hidden = await fan_out(one, graves, at_once=HIDDEN_AT_ONCE)
    return [grave for grave, is_hidden in zip(graves, hidden, strict=True) if is_hidden]


async def delete_objects(archive: Archive, graves: Sequence[Grave]) -> wire.Removed:
    """Delete the objects of hidden captures, as many as possible with one request."""
    for grave in graves:
        archive.maps.forget(grave.entry.upload)
    await archive.store.delete([*chain.from_iterable(grave.keys for grave in graves)])
    return wire.Removed(captures=len(graves), stored_size=sum(grave.entry.stored_size for grave in graves))


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
    named = await _named(archive, stored)
    deleted = await _delete_named(archive, named, is_complete=is_complete)
    await archive.store.delete([stored.key])
    log.warning("finished a removal that was cut short", extra=facts(objects=deleted))


async def _delete_named(
    archive: Archive, named: Mapping[str, object_keys.ObjectKey], *, is_complete: bool
) -> int:
    """Delete the objects that a record names, but those of uploads that are kept; return how many."""
    captures = {(key.tenant, key.capture) for key in named.values()}
    uploads = frozenset(key.upload for key in named.values())
    kept = {await _kept_upload(archive, *each, uploads, is_complete=is_complete) for each in captures}
    keys = [text for text, key in named.items() if key.upload not in kept]
    await archive.store.delete(keys)
    return len(keys)


async def removed_uploads(archive: Archive, prefix: str = object_keys.REMOVALS) -> frozenset[str]:
    """The uploads whose removal is recorded and not finished yet: nothing of them is ever read again."""
    found: set[str] = set()
    async for stored in archive.store.list(prefix):
        found.update(key.upload for key in (await _named(archive, stored)).values())
    return frozenset(found)


async def _grave_of(archive: Archive, entry: Entry) -> Grave:
    """The entry with all objects of its capture.

    Another whole upload of the same id, such as one that was never acknowledged, would bring it back.
    """
    prefix = object_keys.capture_prefix(entry.tenant, entry.id)
    listed = {stored.key async for stored in archive.store.list(prefix)}
    return Grave(entry, sorted(listed.union(entry.keys)))


async def _named(archive: Archive, stored: Stored) -> dict[str, object_keys.ObjectKey]:
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
        await hide(archive, [Grave(known, known.keys)], "deleted")
        return None
    return known.upload
