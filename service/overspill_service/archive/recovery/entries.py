"""The entry of a capture, read from its objects. Every recovery of a catalog uses it.

An upload is whole if its segments 0 to n exist and segment n says that it is the last. The upload of a live
capture is whole as far as it goes: each of its segments holds the entry as it then was, which names the
segments before it. Replicas may have stored several segments of the same number at once, which begin with the
same bytes of one producer. Of the last ones, one that says it is the last is chosen, else the one that ends
furthest.

If a capture has several whole uploads, one is chosen: unexpired before expired, then the content of the
earliest, then the latest expiry. The expiry marker with the highest revision overrides the entry's expiry. An
upload whose removal is recorded is never read again, nor is a capture with a removal marker.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct
from overspill.wire import State

from overspill_service.archive.archive import CONCURRENT_TAILS, inline_index
from overspill_service.archive.removal_records import removed_uploads
from overspill_service.catalog.records import Entry, Segment, Tombstone
from overspill_service.errors import CaptureDamaged, RecordDamaged
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format import object_keys
from overspill_service.store_format.frame_map import FrameMap
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.objects import StoredObject
    from overspill_service.store_format.frames import Frame
    from overspill_service.store_format.index import Index

_ORDER: Final = {State.COMPLETE: 0, State.PARTIAL: 1, State.LIVE: 2}

log = logging.getLogger(__name__)
encode_entry = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


class UploadFound(Struct, kw_only=True):
    """One upload's objects as a listing shows them."""

    name: str
    segments: dict[tuple[int, str], StoredObject] = msgspec.field(default_factory=dict)
    """By number and name. Segments of live captures that were stored at once have the same number."""
    markers: dict[tuple[int, int], StoredObject] = msgspec.field(default_factory=dict)
    """Expiry markers by revision and expiry."""

    @property
    def count(self) -> int:
        """The number of its segments."""
        return len({number for number, _ in self.segments})

    @property
    def objects(self) -> list[StoredObject]:
        return [*self.segments.values(), *self.markers.values()]

    @property
    def modified(self) -> float:
        """When the newest of its objects was written, in seconds since the epoch."""
        return max(each.modified for each in self.objects)


class CaptureFound(Struct, frozen=True, kw_only=True):
    """One capture's uploads as a listing shows them."""

    tenant: str
    capture: str
    uploads: list[UploadFound]
    removals: dict[str, StoredObject]
    """Markers of removals, by their keys."""

    def is_removed(self, entry: Entry) -> bool:
        """Return whether an entry is of a capture that was live and was removed."""
        return entry.removal_marker in self.removals

    def marker_of(self, name: str) -> tuple[float, str] | None:
        """Return the last expiry that was set for an upload and its marker's key, or None."""
        markers = next((upload.markers for upload in self.uploads if upload.name == name), None)
        if not markers:
            return None
        latest = max(markers)
        return float(latest[1]), markers[latest].key


async def captures_in(archive: Archive, prefix: str = object_keys.ROOT) -> AsyncIterator[CaptureFound]:
    """Yield every capture that has objects under this prefix."""
    group: list[tuple[object_keys.ObjectKey, StoredObject]] = []
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


def _grouped(group: list[tuple[object_keys.ObjectKey, StoredObject]]) -> CaptureFound:
    uploads: dict[str, UploadFound] = {}
    removals = {stored.key: stored for key, stored in group if key.is_removal}
    for key, stored in group:
        if key.is_removal:
            continue
        upload = uploads.setdefault(key.upload, UploadFound(name=key.upload))
        if key.number is not None:
            upload.segments[key.number, key.name] = stored
        elif key.expires is not None:
            upload.markers[key.revision, key.expires] = stored
    first = group[0][0]
    found = list(uploads.values())
    return CaptureFound(tenant=first.tenant, capture=first.capture, uploads=found, removals=removals)


async def recover(archive: Archive, tenant: str, capture: str) -> Entry | None:
    """Return the entry of one capture from its objects, or None if no upload of it is whole."""
    async for found in captures_in(archive, object_keys.capture_prefix(tenant, capture)):
        removed = await removed_uploads(archive, object_keys.removals_prefix(tenant))
        return await entry_of(archive, found, removed)
    return None


async def entry_of(
    archive: Archive, found: CaptureFound, removed: frozenset[str] = frozenset()
) -> Entry | None:
    """Return the entry of the upload to read, or None. `removed` uploads are ignored."""
    left = [upload for upload in found.uploads if upload.name not in removed]
    entries = [await _read(archive, found, upload) for upload in left]
    whole = [entry for entry in entries if entry is not None and not found.is_removed(entry)]
    alive = [entry for entry in whole if not entry.is_expired(archive.clock())] or whole
    # A whole output may have been about to replace a partial one, and a live capture may have left a segment
    # that no entry had.
    first = min(alive, key=lambda each: (_ORDER[each.state], each.created, each.upload), default=None)
    if first is None:
        return None
    same = [entry for entry in alive if entry.sha256 == first.sha256]
    return max(same, key=lambda entry: (entry.expires, entry.upload))


async def _read(archive: Archive, found: CaptureFound, upload: UploadFound) -> Entry | None:
    """Return the entry of one upload, or None if it is not whole or is damaged. Damage is logged."""
    try:
        whole = await _whole(archive, upload)
    except (CaptureDamaged, msgspec.DecodeError, UnicodeDecodeError) as error:
        cause = fields(tenant=found.tenant, capture=found.capture, cause=str(error))
        log.error("an upload cannot be read", extra=cause)  # noqa: TRY400
        return None
    if whole is None:
        return None
    if problem := await _problem(archive, found, upload, whole):
        log.error(problem, extra=fields(tenant=found.tenant, capture=found.capture))
        return None
    expires, marker = found.marker_of(upload.name) or (whole.entry.expires, None)
    if marker == whole.entry.marker:  # a live capture's segment that was stored after the change
        expires = max(expires, whole.entry.expires)
    index = await archive.cpu.run_for_frames(whole.frame_count, inline_index, whole.frames)
    return msgspec.structs.replace(
        whole.entry, segments=whole.segments, index=index, expires=expires, marker=marker
    )


class _Whole(NamedTuple):
    """A whole upload: its entry, and each of its segments with the index at its end."""

    entry: Entry
    segments: list[Segment]
    indexes: list[Index]

    @property
    def frames(self) -> list[list[Frame]]:
        return [index.frames for index in self.indexes]

    @property
    def frame_count(self) -> int:
        return sum(map(len, self.frames))


async def _whole(archive: Archive, upload: UploadFound) -> _Whole | None:
    """Return an upload with all its segments. None if it is still running, was given up, or is being removed.

    Raises as `_names` does.
    """
    names = await _names(archive, upload)
    if not names or not all(each in upload.segments for each in enumerate(names)):
        return None
    objects = [upload.segments[each] for each in enumerate(names)]
    indexes = await fan_out(
        lambda each: archive.read_index(each.key, each.size), objects, concurrency=CONCURRENT_TAILS
    )
    if not indexes[-1].entry:
        return None
    segments = [
        Segment(stored.size, index.size, index.newlines, name)
        for stored, index, name in zip(objects, indexes, names, strict=True)
    ]
    return _Whole(_decode_entry(indexes[-1].entry), segments, indexes)


async def _problem(archive: Archive, found: CaptureFound, upload: UploadFound, whole: _Whole) -> str:
    """Return what is wrong with a whole upload, for the log; empty if nothing is."""
    entry = whole.entry
    if (entry.tenant, entry.id, entry.upload) != (found.tenant, found.capture, upload.name):
        return "an object holds the entry of another capture"
    frames = await archive.cpu.run_for_frames(whole.frame_count, FrameMap.of, whole.frames)
    are_consecutive = _are_consecutive(whole.indexes, upload.name, is_ended=not entry.is_live)
    if frames.size != entry.size or not are_consecutive:
        return "the segments of a capture do not belong together"
    return ""


async def _names(archive: Archive, upload: UploadFound) -> list[str]:
    """Return the names of an upload's segments in their order; an empty list if it has no segments.

    Raises as `Archive.read_index` does, and what decoding an entry raises.
    """
    count = upload.count
    if len(upload.segments) == count:
        return [name for _, name in sorted(upload.segments)]
    last = {name: stored for (number, name), stored in upload.segments.items() if number == count - 1}
    if not last:
        return []
    ends = {name: await archive.read_index(stored.key, stored.size) for name, stored in last.items()}
    chosen = max(ends, key=lambda name: (ends[name].last, ends[name].first_offset + ends[name].size, name))
    before = _decode_entry(ends[chosen].entry).segments if ends[chosen].entry else []
    return [*(each.name for each in before), chosen]


def _are_consecutive(indexes: Sequence[Index], upload: str, *, is_ended: bool) -> bool:
    """Return whether the segments are of this upload, in order, and only the last of a whole one says so."""
    offset = newlines = 0
    for number, index in enumerate(indexes):
        expected = upload, number, offset, newlines, number == len(indexes) - 1 and is_ended
        if expected != (index.upload, index.number, index.first_offset, index.first_newline, index.last):
            return False
        offset, newlines = offset + index.size, newlines + index.newlines
    return True


async def record_of(archive: Archive, tenant: str, capture: str) -> Entry | Tombstone | None:
    """Return what the catalog knows of a capture.

    A record that cannot be decoded is replaced from the objects. Raises `RecordDamaged` if the objects do not
    give an entry either.
    """
    try:
        return await archive.catalog.get(tenant, capture)
    except RecordDamaged:
        entry = await recover(archive, tenant, capture)
        if entry is None:
            raise
        if await archive.catalog.restore(entry):
            log.warning(
                "replaced a damaged record of the catalog", extra=fields(tenant=tenant, capture=capture)
            )
        return await archive.catalog.get(tenant, capture)
