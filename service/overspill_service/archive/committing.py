"""Commits an upload: it is in the object store, and gets an entry in the catalog.

If the id already has an entry, that entry wins. It loses if it has expired, if it was removed, or if its
objects are damaged. A partial one also loses to the whole output that begins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from overspill.wire import State

from overspill_service.archive import retention
from overspill_service.archive.archive import inline_index
from overspill_service.archive.lifetimes import extend, marked, require_free
from overspill_service.archive.recovery.entries import encode_entry, record_of
from overspill_service.archive.recovery.expiries import is_expired, with_known_expiry
from overspill_service.archive.recovery.rebuild import compared
from overspill_service.archive.recovery.stale_entries import drop_entry
from overspill_service.archive.removal import remove_without_record
from overspill_service.archive.removal_records import removed_uploads
from overspill_service.archive.verification import is_intact
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.errors import (
    Absent,
    CatalogIncomplete,
    CatalogRefuses,
    CatalogUnavailable,
    IdConflict,
    QuotaExceeded,
    RecordDamaged,
)
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.captures import Captures
    from overspill_service.archive.uploading import Upload

TRIES: Final = 5
"""How often an entry that can no longer be read may change before it is replaced."""


async def existing_entry(captures: Captures, capture: str) -> Entry | None:
    """Return the entry that holds this id, or None if it has expired or was removed.

    A catalog that lost data seconds ago may not know the entry. Then the content is stored twice, and the
    sweep removes one copy.
    """
    try:
        found = await record_of(captures.archive, captures.tenant.name, capture)
        if isinstance(found, Entry):
            found = await compared(captures.archive, found)
    except RecordDamaged:
        return None
    if found is None and not await captures.archive.was_complete():
        found = await captures.look_up(capture, is_limited=False)
    if not isinstance(found, Entry) or not await _is_live(captures.archive, found):
        return None
    if captures.bound is not None and not captures.bound.allows(found.session):
        raise _other_content(found)
    return found


async def _is_live(archive: Archive, existing: Entry) -> bool:
    return not await is_expired(archive, existing) and not await _is_removed(archive, existing)


def latest_expiry(damaged: Entry | None, expires: float) -> float:
    """Return the later expiry: the new upload lives at least as long as the damaged one would have."""
    return expires if damaged is None else max(expires, damaged.expires)


async def _is_removed(archive: Archive, existing: Entry) -> bool:
    """Return whether the object store has a record of a removal that the catalog has lost."""
    if await archive.catalog.is_complete():
        return False
    return existing.upload in await removed_uploads(archive, object_keys.removals_prefix(existing.tenant))


async def renew(captures: Captures, existing: Entry, expires: float) -> Entry:
    """Return the current entry, with a later expiry if that is worth a request.

    Raises `CatalogUnavailable`.
    """
    found = await captures.look_up(existing.id)
    if not isinstance(found, Entry) or found.sha256 != existing.sha256:
        raise _removed(existing)
    if not retention.is_worth_renewing(captures.archive.clock(), found.expires, expires):
        return found
    try:
        return await extend(captures, found, expires)
    except Absent as error:
        raise _removed(existing) from error


async def finish(captures: Captures, upload: Upload, draft: Entry) -> tuple[Entry, bool]:
    """Store the last segment and commit the entry. Return the entry of the id, and whether it is this one.

    `draft` has everything but the segments. Raises what `storing.put` raises.
    """
    entry = await _sealed(captures, upload, draft)
    try:
        winner = await _commit(captures, upload, entry)
    except (QuotaExceeded, CatalogIncomplete, CatalogRefuses):
        await _withdraw(captures, upload)
        raise
    if isinstance(winner, Tombstone):
        await upload.discard()
        raise _removed(entry)
    if winner.upload == entry.upload:
        return winner, True
    await upload.discard()
    require_same(winner, entry.sha256, entry.sent)
    return await renew(captures, winner, entry.expires), False


async def supersede(captures: Captures, upload: Upload, draft: Entry, partial: Entry) -> tuple[Entry, bool]:
    """Do the same as `finish`, and replace a partial capture. The draft's content begins with all of it."""
    archive = captures.archive
    entry = await _sealed(captures, upload, draft)
    while True:
        if partial.expires > entry.expires:
            entry = await marked(archive, entry, partial.expires)
        entry = msgspec.structs.replace(entry, **partial.reading)
        try:
            found = await archive.catalog.replace(partial, entry)
        except CatalogRefuses:
            await _unmark(archive, entry)
            await _withdraw(captures, upload)
            raise
        if found is entry:
            await upload.reservation.free()
            archive.maps.discard(partial.version)
            await archive.store.delete(partial.keys)
            return entry, False
        if found is None or (found.state, found.sha256, found.is_held) != (
            partial.state,
            partial.sha256,
            False,
        ):
            break
        partial = found  # it was read, prolonged or moved meanwhile
    await upload.discard()
    await _unmark(archive, entry)
    if found is None:
        raise _removed(entry)
    require_free(found)
    require_same(found, entry.sha256, entry.sent)
    return await renew(captures, found, entry.expires), False


async def _sealed(captures: Captures, upload: Upload, draft: Entry) -> Entry:
    """Store the last segment. Return the draft with its segments."""
    try:
        await upload.seal(encode_entry(draft))
    except BaseException:
        await _withdraw(captures, upload)
        raise
    count = sum(map(len, upload.frames))
    packed = await captures.archive.cpu.run_for_frames(count, inline_index, upload.frames)
    return msgspec.structs.replace(draft, segments=upload.segments, index=packed)


async def _withdraw(captures: Captures, upload: Upload) -> None:
    """Delete the stored objects, and the entry if another request has recovered the upload meanwhile."""
    await upload.discard()
    found = await captures.archive.catalog.get(upload.tenant, upload.capture)
    if isinstance(found, Entry) and found.upload == upload.name:
        await drop_entry(captures.archive, found)


async def _commit(captures: Captures, upload: Upload, entry: Entry) -> Entry | Tombstone:
    """Commit the entry. An entry that holds the id but can no longer be read is replaced.

    The new one lives as long as that, and is on hold if that is, also if that was decided just now.
    """
    for _ in range(TRIES):
        winner = await _try_commit(captures, upload, entry)
        if not isinstance(winner, Entry) or winner.upload == entry.upload:
            return winner
        if await _is_live(captures.archive, winner) and await is_intact(captures.archive, winner):
            await _unmark(captures.archive, entry)
            return winner
        winner = await with_known_expiry(captures.archive, winner)
        if winner.expires > entry.expires:
            entry = await marked(captures.archive, entry, winner.expires)
        reason = "expired" if winner.is_expired(captures.archive.clock()) else "unreadable"
        await remove_without_record(captures.archive, [winner], reason)
    await _unmark(captures.archive, entry)
    raise _removed(entry)


async def _try_commit(captures: Captures, upload: Upload, entry: Entry) -> Entry | Tombstone:
    catalog, quota = captures.archive.catalog, captures.quota
    try:
        return await catalog.commit(entry, quota)
    except RecordDamaged:
        winner = entry if await catalog.restore(entry) else await catalog.commit(entry, quota)
        await upload.reservation.free()
        return winner


async def _unmark(archive: Archive, entry: Entry) -> None:
    """Delete the marker of an entry that is not stored."""
    if entry.marker is not None:
        await archive.store.delete([entry.marker])


def _removed(entry: Entry) -> CatalogUnavailable:
    return CatalogUnavailable(f"{entry.id} was removed while it was being sent; send it again")


def require_same(existing: Entry, sha256: bytes, sent: bytes = b"") -> None:
    """Raise `IdConflict` unless the entry has the same content.

    `sha256` is the digest of the content, masked or not. `sent` is that of what was sent, if it had secrets.
    """
    if (sent or sha256) != (existing.sent or existing.sha256) and (sent or sha256) != existing.sha256:
        raise conflict(existing)


def conflict(existing: Entry) -> IdConflict:
    """Return the error for content that the id cannot have. Only for callers that may know the capture."""
    if existing.is_live:
        return IdConflict(f"{existing.id} is live: its producer appends to it, and completes it")
    if existing.state is State.PARTIAL:
        advice = "content that begins with all of it completes it, in the same session; this does not"
        return IdConflict(f"{existing.id} is partial: {advice}")
    return _other_content(existing)


def _other_content(existing: Entry) -> IdConflict:
    return IdConflict(
        f"{existing.id} already has other content; an id is derived from its content, so this one was "
        "computed wrongly"
    )
