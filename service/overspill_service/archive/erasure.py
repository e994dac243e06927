"""Remove captures on request: one, those of a session, or all of a tenant. Say what remains of them.

Captures on hold stay. See `removal` for why neither a crash nor a lost catalog undoes a removal.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Remainder, Remains

from overspill_service.archive import lifetimes, retention
from overspill_service.archive.captures import INCOMPLETE, Captures, call_id_of, no_capture
from overspill_service.archive.removal import erase, finish_removals, sum_of
from overspill_service.archive.removal_records import put_markers
from overspill_service.catalog.records import Entry, Query, Tombstone, instant
from overspill_service.errors import Absent, CatalogIncomplete
from overspill_service.resources.tasks import fan_out, run_to_completion
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import bind_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from overspill_service.archive.archive import Archive

PAGE: Final = 200
"""Captures that one step looks at."""
CONCURRENCY: Final = 16
"""Captures that are put on hold, or released, at the same time."""
_TOMBSTONE: Final = "that the id was removed, and when; of a capture that was live also when it began"
_UPLOADS: Final = "objects of uploads that were broken off: nothing tells what they belong to"
_VERSIONS: Final = "the bucket keeps deleted objects: a lifecycle rule for noncurrent versions ends that"
_UNKNOWN_VERSIONS: Final = "the store does not tell whether the bucket keeps deleted objects"
_CATALOG_LOG: Final = (
    "names, labels and sizes, and what was appended to live captures: until SQLite's log is written over, or "
    "Redis rewrites its file"
)
_BACKUPS: Final = "copies that an operator made: the service does not know of them"
NOTHING: Final = wire.Removed(captures=0, stored_size=0)


async def delete(
    captures: Captures, ref: str, session: str | None = None, *, any_session: bool = False
) -> wire.Removed:
    """Remove a capture for good. Raises what `Captures.get` raises, and `Held`.

    An expired capture is removed at once, before the next sweep. A removal that was interrupted is finished.
    """
    is_call = call_id_of(ref) is not None
    found = await (captures.get(ref, session, any_session=any_session) if is_call else captures.own(ref))
    if isinstance(found, Tombstone):
        await put_markers(captures.archive, [found.marker] if found.marker else [])
        await captures.archive.store.delete(found.keys)
        return NOTHING
    if found is None or (not is_call and session not in (None, found.session)):
        raise no_capture(ref)
    bind_fields(capture=found.id)
    lifetimes.require_free(found)
    removed = await run_to_completion(erase(captures.archive, captures.tenant.name, [found]))
    if removed.held:  # the catalog had missed the hold, or it came meanwhile
        raise lifetimes.held_error(found)
    return removed


async def delete_session(captures: Captures, session: str) -> wire.Removed:
    """Remove every capture of a session, expired or not. Raises what `delete_all` raises."""
    if not captures.allows_session(session):
        return NOTHING
    return await delete_all(captures, Query(session=session))


async def delete_all(captures: Captures, query: Query) -> wire.Removed:
    """Remove every capture of the query, expired or not, and finish interrupted removals.

    Raises `CatalogIncomplete` if the catalog may not know all of them yet.
    """
    removed, is_complete = NOTHING, True
    while True:
        on_hold, before = 0, removed.captures
        async for entries, was_complete in pages(captures, query, now=0):
            is_complete = is_complete and was_complete
            free = [entry for entry in entries if not entry.is_held]
            step = await run_to_completion(erase(captures.archive, captures.tenant.name, free))
            on_hold += len(entries) - len(free) + step.held
            removed = sum_of(removed, step)
        if removed.captures == before:
            break
    await finish_removals(captures.archive, object_keys.removals_prefix(captures.tenant.name))
    if not is_complete:
        raise CatalogIncomplete(INCOMPLETE)
    return wire.Removed(captures=removed.captures, stored_size=removed.stored_size, held=on_hold)


async def pages(captures: Captures, query: Query, *, now: float) -> AsyncIterator[tuple[list[Entry], bool]]:
    """Yield pages of the captures that have not expired at `now`, and whether the catalog was complete."""
    cursor: str | None = None
    find = partial(captures.archive.catalog.find, captures.tenant.name, query, now=now, limit=PAGE)
    while True:
        (entries, cursor), is_complete = await captures.with_completeness(partial(find, cursor=cursor))
        yield entries, is_complete
        if cursor is None:
            return


async def hold_session(captures: Captures, session: str) -> wire.HoldReceipt:
    """Put every capture of a session on hold. Captures stored later are not on hold."""

    async def hold(entry: Entry) -> bool:
        return (await lifetimes.hold(captures, entry)).is_held

    return await _each_of_session(captures, session, hold)


async def release_session(captures: Captures, session: str) -> wire.HoldReceipt:
    """End the hold of every capture of a session. Return how many were on hold."""

    async def release(entry: Entry) -> bool:
        await lifetimes.release(captures, entry)
        return entry.is_held

    return await _each_of_session(captures, session, release)


async def _each_of_session(
    captures: Captures, session: str, change: Callable[[Entry], Awaitable[bool]]
) -> wire.HoldReceipt:
    """Change every capture of a session. Count those for which `change` returns True.

    Skip captures that disappear.
    """

    async def one(entry: Entry) -> bool:
        with suppress(Absent):
            return await change(entry)
        return False

    count = 0
    async for entries, is_complete in pages(captures, Query(session=session), now=captures.archive.clock()):
        count += sum(await fan_out(one, entries, concurrency=CONCURRENCY))
        if not is_complete:
            raise CatalogIncomplete(INCOMPLETE)
    return wire.HoldReceipt(captures=count)


async def receipt(
    archive: Archive, removed: wire.Removed, *, orphan_age: float, is_whole: bool
) -> wire.Removed:
    """Return the removal with what remains of it, and until when.

    `is_whole`: it was a session or a tenant. `orphan_age` in seconds.
    """
    now = archive.clock()
    remains = [
        Remainder(what=Remains.TOMBSTONE, until=instant(now + retention.TOMBSTONE_TTL), note=_TOMBSTONE)
    ]
    if is_whole:
        orphaned = now + max(orphan_age, retention.MIN_ORPHAN_AGE) + retention.ORPHAN_INTERVAL
        remains.append(Remainder(what=Remains.UNFINISHED_UPLOADS, until=instant(orphaned), note=_UPLOADS))
    if (keeps := await archive.store.keeps_versions()) is not False:
        note = _VERSIONS if keeps else _UNKNOWN_VERSIONS
        remains.append(Remainder(what=Remains.OBJECT_VERSIONS, note=note))
    remains.append(Remainder(what=Remains.CATALOG_LOG, note=_CATALOG_LOG))
    remains.append(Remainder(what=Remains.BACKUPS, note=_BACKUPS))
    return wire.Removed(
        captures=removed.captures,
        stored_size=removed.stored_size,
        held=removed.held,
        at=instant(now),
        remains=remains,
    )
