"""The catalog out of the object store: of one capture, or of all, when the catalog was lost.

An upload is whole when its segments 0 to n are there and the last says that it is the last. Of several
whole uploads of one capture those that have expired lose, then those of another content than the earliest,
then all but the one that lives longest. The expiry marker written last overrides the entry's expiry.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from overspill_service import object_keys
from overspill_service.archive import inline_index
from overspill_service.catalog import Entry, Quota, Segment
from overspill_service.errors import CaptureDamaged
from overspill_service.frame_map import FrameMap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from overspill_service.archive import Archive
    from overspill_service.index import Index
    from overspill_service.objects import Stored

AT_ONCE: Final = 16
"""Captures read at the same time."""
LEASE: Final = "rebuild"
LEASE_TTL: Final = 60.0

log = logging.getLogger(__name__)
encode_entry = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


class UploadFound(Struct, kw_only=True):
    """One upload's objects as a listing shows them."""

    name: str
    segments: dict[int, Stored] = msgspec.field(default_factory=dict)
    markers: dict[int, Stored] = msgspec.field(default_factory=dict)

    @property
    def objects(self) -> list[Stored]:
        return [*self.segments.values(), *self.markers.values()]

    @property
    def modified(self) -> float:
        """When the last of its objects was written."""
        return max(each.modified for each in self.objects)

    @property
    def latest_marker(self) -> int | None:
        """The expiry that was set last; the later one of two set at once."""
        return max(self.markers, key=lambda each: (self.markers[each].modified, each), default=None)


class CaptureFound(Struct, frozen=True, kw_only=True):
    """One capture's uploads as a listing shows them."""

    tenant: str
    capture: str
    uploads: list[UploadFound]

    def marker_of(self, name: str) -> tuple[float, str] | None:
        """The expiry of an upload that was set last, and the key of its marker; None where none was."""
        upload = next((upload for upload in self.uploads if upload.name == name), None)
        expires = None if upload is None else upload.latest_marker
        return None if upload is None or expires is None else (float(expires), upload.markers[expires].key)


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
            upload.markers[key.expires] = stored
    first = group[0][0]
    return CaptureFound(tenant=first.tenant, capture=first.capture, uploads=list(uploads.values()))


async def recover(archive: Archive, tenant: str, capture: str) -> Entry | None:
    """The entry of one capture as its objects tell it; None where no upload of it is whole."""
    async for found in captures_in(archive, object_keys.capture_prefix(tenant, capture)):
        return await entry_of(archive, found)
    return None


async def entry_of(archive: Archive, found: CaptureFound) -> Entry | None:
    """The entry of the whole upload that the capture is read from, or None."""
    entries = [await _read(archive, found, upload) for upload in found.uploads]
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
        log.error("an upload of %s of tenant %s cannot be read: %s", found.capture, found.tenant, error)  # noqa: TRY400
        return None
    if (entry.tenant, entry.id, entry.upload) != (found.tenant, found.capture, upload.name):
        log.error("an object of %s of tenant %s holds the entry of another", found.capture, found.tenant)
        return None
    frames = FrameMap.of([index.frames for index in indexes])
    if frames.size != entry.size or not _fit_together(indexes, upload.name):
        log.error("the segments of %s of tenant %s do not belong together", found.capture, found.tenant)
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
        if marker is None or marker[1] == known.marker:
            return
        expires, key = marker
        if await archive.catalog.amend(known, expires=expires, marker=key):
            await _correct_expiry(archive, msgspec.structs.replace(known, expires=expires, marker=key))


async def rebuild(archive: Archive, holder: str = "") -> int:
    """Put every unexpired capture of the object store into the catalog; how many there were.

    Captures that the catalog knows stay as they are, so this may run at any time, and twice at once.
    The lease of its `holder` is renewed on the way.
    """
    count = 0
    pending: list[CaptureFound] = []
    async for found in captures_in(archive):
        pending.append(found)
        if len(pending) == AT_ONCE:
            count += await _adopt_all(archive, pending)
            pending = []
            if holder:
                await archive.catalog.lease(LEASE, holder, LEASE_TTL)
    count += await _adopt_all(archive, pending)
    await archive.catalog.mark_complete()
    return count


async def rebuild_if_lost(archive: Archive, holder: str) -> int | None:
    """Rebuild where the catalog is not complete and nobody else is at it; None where that is not needed."""
    if await archive.catalog.is_complete():
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
        if marker is not None and marker[1] != known.marker:  # or one that was set since the listing
            await _correct_expiry(archive, known)
        return True
    entry = await entry_of(archive, found)
    if entry is None or entry.is_expired(archive.clock()):
        return False
    return isinstance(await archive.catalog.commit(entry, Quota()), Entry)
