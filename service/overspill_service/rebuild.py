"""The catalog out of the object store: of one capture, or of all, when the catalog was lost.

An upload is whole when its segments 0 to n are there and the last says that it is the last. Of several
whole uploads of one capture those that have expired lose, then those of another content than the earliest,
then all but the one that lives longest. The expiry marker with the highest revision overrides the entry's
expiry. Nothing is read again of an upload whose removal is recorded.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from overspill_service import object_keys
from overspill_service.archive import inline_index
from overspill_service.catalog import Entry, Quota, Segment, Tombstone
from overspill_service.errors import CaptureDamaged
from overspill_service.frame_map import FrameMap
from overspill_service.logs import facts
from overspill_service.removal import finish_removals, removed_uploads
from overspill_service.stale import Listed, drop_stale, forget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from overspill_service.archive import Archive
    from overspill_service.index import Index
    from overspill_service.objects import Stored

AT_ONCE: Final = 16
"""Captures read at the same time."""
YOUNG_SECONDS: Final = 120.0
"""After which no upload is still on its way from its last segment to its end."""
LEASE: Final = "rebuild"
LEASE_TTL: Final = 60.0

log = logging.getLogger(__name__)
encode_entry = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


class UploadFound(Struct, kw_only=True):
    """One upload's objects as a listing shows them."""

    name: str
    segments: dict[int, Stored] = msgspec.field(default_factory=dict)
    markers: dict[tuple[int, int], Stored] = msgspec.field(default_factory=dict)
    """Expiry markers by revision and expiry."""

    @property
    def objects(self) -> list[Stored]:
        return [*self.segments.values(), *self.markers.values()]

    @property
    def modified(self) -> float:
        """When the last of its objects was written."""
        return max(each.modified for each in self.objects)


class CaptureFound(Struct, frozen=True, kw_only=True):
    """One capture's uploads as a listing shows them."""

    tenant: str
    capture: str
    uploads: list[UploadFound]

    def marker_of(self, name: str) -> tuple[float, str] | None:
        """The expiry of an upload that was set last, and the key of its marker; None where none was."""
        markers = next((upload.markers for upload in self.uploads if upload.name == name), None)
        if not markers:
            return None
        latest = max(markers)
        return float(latest[1]), markers[latest].key


async def captures_in(archive: Archive, prefix: str = object_keys.ROOT) -> AsyncIterator[CaptureFound]:
    """Every capture that has objects under this prefix."""
    group: list[tuple[object_keys.ObjectKey, Stored]] = []
    async for stored in archive.store.list(prefix):
        key = object_keys.parse(stored.key)
        if key is None:
            continue
        if group and (group[0][0].tenant, group[0][0].capture) != (key.tenant, key.capture):
            yield _grouped(group)
            group = []
        group.append((key, stored))
    if group:
        yield _grouped(group)


def _grouped(group: list[tuple[object_keys.ObjectKey, Stored]]) -> CaptureFound:
    uploads: dict[str, UploadFound] = {}
    for key, stored in group:
        upload = uploads.setdefault(key.upload, UploadFound(name=key.upload))
        if key.number is not None:
            upload.segments[key.number] = stored
        elif key.expires is not None:
            upload.markers[key.revision, key.expires] = stored
    first = group[0][0]
    return CaptureFound(tenant=first.tenant, capture=first.capture, uploads=list(uploads.values()))


async def recover(archive: Archive, tenant: str, capture: str) -> Entry | None:
    """The entry of one capture as its objects tell it; None where no upload of it is whole."""
    async for found in captures_in(archive, object_keys.capture_prefix(tenant, capture)):
        return await entry_of(archive, found, await removed_uploads(archive, tenant))
    return None


async def entry_of(
    archive: Archive, found: CaptureFound, removed: frozenset[str] = frozenset()
) -> Entry | None:
    """The entry of the whole upload to read it from, or None. `removed` uploads do not count."""
    left = [upload for upload in found.uploads if upload.name not in removed]
    entries = [await _read(archive, found, upload) for upload in left]
    whole = [entry for entry in entries if entry is not None]
    alive = [entry for entry in whole if not entry.is_expired(archive.clock())] or whole
    first = min(alive, key=lambda entry: (entry.created, entry.upload), default=None)
    if first is None:
        return None
    same = [entry for entry in alive if entry.sha256 == first.sha256]
    return max(same, key=lambda entry: (entry.expires, entry.upload))


async def _read(archive: Archive, found: CaptureFound, upload: UploadFound) -> Entry | None:
    """The entry of one upload; None where it is not whole, which includes damage, which is logged."""
    if sorted(upload.segments) != list(range(len(upload.segments))) or not upload.segments:
        return None
    try:
        ordered = [upload.segments[number] for number in range(len(upload.segments))]
        indexes = [await archive.read_index(each.key, each.size) for each in ordered]
        if not indexes[-1].last:
            return None
        entry = _decode_entry(indexes[-1].entry)
    except (CaptureDamaged, msgspec.DecodeError, UnicodeDecodeError) as error:
        cause = facts(tenant=found.tenant, capture=found.capture, cause=str(error))
        log.error("an upload cannot be read", extra=cause)  # noqa: TRY400
        return None
    about = facts(tenant=found.tenant, capture=found.capture)
    if (entry.tenant, entry.id, entry.upload) != (found.tenant, found.capture, upload.name):
        log.error("an object holds the entry of another capture", extra=about)
        return None
    frames = FrameMap.of([index.frames for index in indexes])
    if frames.size != entry.size or not _fit_together(indexes, upload.name):
        log.error("the segments of a capture do not belong together", extra=about)
        return None
    expires, marker = found.marker_of(upload.name) or (entry.expires, None)
    return msgspec.structs.replace(
        entry,
        segments=[
            Segment(stored.size, index.size, index.newlines)
            for stored, index in zip(ordered, indexes, strict=True)
        ],
        index=inline_index([index.frames for index in indexes]),
        expires=expires,
        marker=marker,
    )


def _fit_together(indexes: Sequence[Index], upload: str) -> bool:
    """Whether each segment is of this upload, in its place, and only the last says that it is."""
    offset = newlines = 0
    for number, index in enumerate(indexes):
        place = upload, number, offset, newlines, number == len(indexes) - 1
        if place != (index.upload, index.number, index.first_offset, index.first_newline, index.last):
            return False
        offset, newlines = offset + index.size, newlines + index.newlines
    return True


async def _correct_expiry(archive: Archive, known: Entry) -> None:
    """Give an entry the expiry that its objects tell, until none was set while they were looked at.

    Whoever sets one writes the marker first, so it is seen here, or its entry is amended after this.
    """
    prefix = object_keys.capture_prefix(known.tenant, known.id)
    async for found in captures_in(archive, prefix):
        marker = found.marker_of(known.upload)
        if marker is None or not _is_newer(marker[1], known):
            return
        expires, key = marker
        amended = await archive.catalog.amend(known, expires=expires, marker=key)
        if amended is not None:
            await _correct_expiry(archive, amended)


def _is_newer(marker: str, known: Entry) -> bool:
    return object_keys.revision_of(marker) > object_keys.revision_of(known.marker)


async def rebuild(archive: Archive, holder: str = "") -> int:
    """Put every unexpired capture of the object store into the catalog; return how many there were.

    First, removals that were cut short are finished; last, entries whose objects are gone are dropped.
    Captures that the catalog knows stay as they are, so this may run at any time, and twice at once.
    The lease of its `holder` is renewed on the way.
    """
    began = await archive.catalog.begin_rebuild()
    await finish_removals(archive)
    listed = Listed(secrets.token_bytes(16))
    count = 0
    pending: list[CaptureFound] = []
    async for found in captures_in(archive):
        for upload in found.uploads:
            if upload.segments:
                listed.add(upload.name)
        pending.append(found)
        if len(pending) == AT_ONCE:
            count += await _adopt_all(archive, pending)
            pending = []
            await _renew(archive, holder)
    count += await _adopt_all(archive, pending)
    await _drop_stale(archive, listed, holder)
    await archive.catalog.mark_complete(began)
    return count


async def _drop_stale(archive: Archive, listed: Listed, holder: str) -> None:
    dropped = 0
    async with aclosing(drop_stale(archive, listed)) as pages:
        async for page in pages:
            dropped += page
            await _renew(archive, holder)
    if dropped:
        log.warning("dropped %d entries from the catalog: their objects were deleted", dropped)


async def _renew(archive: Archive, holder: str) -> None:
    if holder:
        await archive.catalog.lease(LEASE, holder, LEASE_TTL)


async def rebuild_if_due(archive: Archive, holder: str) -> int | None:
    """Rebuild where the catalog asks for it and nobody else is at it; None where that is not needed."""
    if not await archive.catalog.is_rebuild_due():
        return None
    if not await archive.catalog.lease(LEASE, holder, LEASE_TTL):
        return None
    try:
        return await rebuild(archive, holder)
    finally:
        await archive.catalog.release(LEASE, holder)


async def _adopt_all(archive: Archive, found: Iterable[CaptureFound]) -> int:
    return sum(await asyncio.gather(*(adopt(archive, each) for each in found)))


async def adopt(archive: Archive, found: CaptureFound) -> bool:
    """See that a capture that has objects has its entry; false where there is none to give.

    One that the catalog knows costs no look into its objects; an expiry that only they know is put right.
    """
    known = await archive.catalog.get(found.tenant, found.capture)
    if isinstance(known, Entry) and not known.is_expired(archive.clock()):
        marker = found.marker_of(known.upload)
        if marker is not None and _is_newer(marker[1], known):
            await _correct_expiry(archive, known)
        return True
    entry = await entry_of(archive, found)
    if entry is None or entry.is_expired(archive.clock()):
        return False
    return isinstance(await give_back(archive, entry, Quota()), Entry)


async def give_back(archive: Archive, entry: Entry, quota: Quota) -> Entry | Tombstone | None:
    """Commit the entry of an upload that was found whole; None where that was withdrawn meanwhile.

    A young upload may be one that is just being refused: then its objects are deleted first and its entry
    after them, so one of the two looks finds the other's work. Raises what `Catalog.commit` raises.
    """
    held = await archive.catalog.commit(entry, quota)
    if not isinstance(held, Entry) or held.upload != entry.upload or not is_young(archive, entry):
        return held
    try:
        await archive.index_of(entry, len(entry.segments) - 1)
    except CaptureDamaged:
        await forget(archive, entry)
        return None
    return held


def is_young(archive: Archive, entry: Entry) -> bool:
    return entry.created > archive.clock() - YOUNG_SECONDS
