"""The requests of the producer of a live capture: begin it, append to it, end it.

Each is one request, on any replica. Accepted bytes go into the catalog's buffer; the `Flusher` of some
replica makes them durable later. A request waits for that if the buffer is full, and at the end.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from overspill import wire
from overspill.wire import State

from overspill_service.archive.captures import check_id
from overspill_service.archive.metadata import CaptureMetadata
from overspill_service.archive.metadata import screened as screened_metadata
from overspill_service.archive.reservations import KEEP_SECONDS
from overspill_service.catalog.live import Append, Appended, AppendStatus, LiveRecord
from overspill_service.catalog.records import Entry
from overspill_service.errors import (
    BufferFull,
    CaptureTooLarge,
    CatalogUnavailable,
    DigestMismatch,
    IdConflict,
    NotLive,
    OtherProducer,
    ServiceError,
    WrongOffset,
)
from overspill_service.live.beginning import new_entry
from overspill_service.live.buffer_memory import BufferMemory
from overspill_service.live.ending import Ending, require_small
from overspill_service.live.filling import fill, framed_ahead
from overspill_service.live.flusher import SEGMENT_BYTES, Flusher, reopened
from overspill_service.live.progress import progress
from overspill_service.live.screening import screened
from overspill_service.live.segments import resumed
from overspill_service.resources.tasks import run_to_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.archive.captures import Captures
    from overspill_service.live.append_queues import QueuedAppend

TENANT_BYTES: Final = 256 * 2**20
"""The most accepted bytes of one tenant that are not in the object store yet."""
MAX_UNCOUNTED: Final = 2 * SEGMENT_BYTES
"""The most bytes of a capture that may be accepted and not counted yet. A larger offset is refused later."""
ROOM_SECONDS: Final = 5.0
"""Seconds that an append waits for the object store before it is refused."""
TRIES: Final = 3
_FULL: Final = "the buffer of {} is full, and storing it takes long: try again in a moment"


class Producer(Struct, frozen=True):
    """The producer of a capture, who appends to it. Each producer of a capture has another `word`."""

    captures: Captures
    flusher: Flusher
    word: str

    async def begin(self, capture: str, metadata: CaptureMetadata) -> tuple[wire.LiveStatus, bool]:
        """Begin a live capture. Return its status, and whether it is new. Safe to repeat.

        Raises `OtherProducer`, `IdConflict`, `NotLive`, `QuotaExceeded`, `SecretsFound`, and what
        `Captures.look_up` raises.
        """
        check_id(capture)
        captures = self.captures
        captures.require_own(metadata.session)
        metadata = await self._screened(metadata)
        now = captures.archive.clock()
        found = await captures.look_up(capture, is_limited=False)
        if isinstance(found, Entry) and not found.is_expired(now):
            return await self._begun_before(found, metadata), False
        entry = new_entry(
            captures.tenant, capture, metadata, self.word, now, self.flusher.schedule.least_life
        )
        async with self._room(entry):
            # Scheduled before all other steps: if this process dies after any, another one takes over.
            await self.flusher.schedule.begin(entry)
            committed = await captures.archive.catalog.commit(entry, captures.quota)
            if not isinstance(committed, Entry) or committed.upload != entry.upload:
                raise CatalogUnavailable(f"{capture} was begun or removed at the same time; try again")
        record = LiveRecord(producer=self.word, accepted=0, start=0, durable=0, active=now)
        await captures.archive.catalog.open_live(entry.tenant, entry.id, record, only_of=entry)
        self.flusher.digests.begin(entry.upload)
        return wire.LiveStatus(id=capture, state=State.LIVE, accepted=0, durable=0), True

    async def _begun_before(self, entry: Entry, metadata: CaptureMetadata) -> wire.LiveStatus:
        """Return the progress of the capture, if this producer has begun it before."""
        if not self.captures.allows(entry) or entry.session != metadata.session:
            raise IdConflict(f"{entry.id} is another capture; a live capture's id comes from a random word")
        if not entry.is_live:
            raise NotLive(f"{entry.id} is {entry.state.value}: begin another capture")
        if entry.producer != self.word:
            raise OtherProducer(f"{entry.id} was begun by another producer: begin another capture")
        return await progress(self.captures.archive, entry)

    async def append(
        self, capture: str, offset: int, data: bytes, queued: QueuedAppend, *, is_last: bool = False
    ) -> wire.LiveStatus:
        """Add bytes at the end, once the append before is stored. Empty ones are a sign of life.

        If the tenant stores no secrets, the last word may be left for later, unless `is_last` says that
        nothing follows. Raises `WrongOffset`, `OtherProducer`, `NotLive`, `BufferFull`, `CaptureTooLarge`,
        `QuotaExceeded`, `SecretsFound`, and what `Captures.get` raises.
        """
        captures = self.captures
        check_id(capture)
        if captures.bound is not None:
            await captures.get(capture)
        limit = captures.tenant.limits.max_capture_size
        if offset <= limit < offset + len(data):  # one that begins behind the limit is at a wrong offset
            raise CaptureTooLarge(limit)
        name, treatment = (captures.tenant.name, capture), captures.tenant.limits.redaction
        ahead = None if queued.before is None else await framed_ahead(captures.archive, name, data)
        await queued.until_alone()
        append = Append(self.word, offset, data, captures.archive.clock())
        if treatment != "off":
            append = await screened(captures.archive, name, append, treatment, is_last=is_last)
        await self._reserve_ahead(capture, offset, offset + len(append.data))
        append = await fill(self.flusher, captures.archive, name, append, ahead)
        appended = await self._appended(capture, append)
        size = appended.accepted - appended.durable
        if size >= SEGMENT_BYTES:
            self.flusher.start(*name)
        elif append.data and size == len(append.data):  # the first byte that is not stored
            await self.flusher.schedule.after_first_bytes(*name)
        return wire.LiveStatus(
            id=capture, state=State.LIVE, accepted=appended.accepted, durable=appended.durable
        )

    async def _appended(self, capture: str, append: Append) -> Appended:
        for _ in range(TRIES):
            appended = await self._try(capture, append)
            if appended.status is AppendStatus.DONE:
                return appended
            if appended.status is AppendStatus.OTHER_PRODUCER:
                raise OtherProducer(f"another producer appends to {capture}: begin another capture")
            if appended.status is AppendStatus.ENDED:
                raise NotLive(f"{capture} has ended: begin another capture")
            if appended.status is AppendStatus.WRONG_OFFSET:
                raise await self._wrong_offset(capture, append, appended)
            if appended.status is AppendStatus.UNKNOWN:
                await reopened(self.captures.archive, await self._entry(capture))
            else:
                await self._make_room(capture)
        raise BufferFull(_FULL.format(capture))

    async def _try(self, capture: str, append: Append) -> Appended:
        return await self.captures.archive.catalog.append_live(
            self.captures.tenant.name, capture, append, limit=wire.MAX_UNSTORED, tenant_limit=TENANT_BYTES
        )

    async def _entry(self, capture: str) -> Entry:
        """Return the entry of a live capture. Raises `NotLive`, and what `Captures.get` raises."""
        entry = await self.captures.get(capture)
        if not entry.is_live:
            raise NotLive(f"{capture} is {entry.state.value}: begin another capture")
        if entry.producer != self.word:
            raise OtherProducer(f"another producer appends to {capture}: begin another capture")
        return entry

    async def _wrong_offset(self, capture: str, append: Append, appended: Appended) -> WrongOffset:
        """Return the error with the right offset. If the producer is ahead of the catalog, ask the store."""
        expected = appended.accepted
        if append.offset > expected:
            entry = await resumed(self.captures.archive, await self._entry(capture))
            expected = max(expected, entry.size)
        return WrongOffset(append.offset, expected)

    async def _make_room(self, capture: str) -> None:
        """Wait for a while until accepted bytes are stored."""
        task = self.flusher.start(self.captures.tenant.name, capture)
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                await asyncio.shield(task)
        except (ServiceError, TimeoutError) as error:
            raise BufferFull(_FULL.format(capture)) from error

    async def _reserve_ahead(self, capture: str, offset: int, end: int) -> None:
        """Reserve the uncounted bytes and one more step, if the append crosses a step of the reservation."""
        quota = self.captures.quota
        step = quota.reservation_step
        if quota.limits_growth and offset // step != end // step:
            entry = await self._entry(capture)
            uncounted = min(max(0, end - entry.size), MAX_UNCOUNTED)
            await self._reserve(entry, uncounted + step, captures=0)

    async def _reserve(self, entry: Entry, size: int, *, captures: int) -> None:
        """Reserve room within the tenant's limits before it sends more. Raises `QuotaExceeded`."""
        catalog, quota = self.captures.archive.catalog, self.captures.quota
        if quota.is_limited:
            await catalog.reserve(
                entry.tenant, entry.upload, size, 0, quota, keep=KEEP_SECONDS, captures=captures
            )

    @asynccontextmanager
    async def _room(self, entry: Entry) -> AsyncIterator[None]:
        """Reserve room for one more capture. Give it back if the block fails. Raises `QuotaExceeded`."""
        await self._reserve(entry, 1, captures=1)  # a tenant at its limit begins nothing
        try:
            yield
        except ServiceError:
            with suppress(CatalogUnavailable):
                await self.captures.archive.catalog.free(entry.tenant, entry.upload)
            raise

    async def complete(self, capture: str, completion: wire.Completion) -> tuple[Entry, bool]:
        """End a live capture. Return its entry once all of it is stored, and whether this ended it.

        Raises `WrongOffset`, `DigestMismatch`, `OtherProducer`, `NotLive`, `InvalidParameter` for too many
        labels, `SecretsFound`, and what the back ends raise.
        """
        screened = CaptureMetadata(status=completion.status or "", labels=completion.labels)
        screened = await self._screened(screened)
        status = None if completion.status is None else screened.status
        completion = replace(completion, status=status, labels=screened.labels)
        entry = await self.captures.get(capture)
        if entry.is_live:
            try:
                return await run_to_completion(self._complete(await self._entry(capture), completion)), True
            except (NotLive, WrongOffset):  # an earlier attempt may have been finished meanwhile
                entry = await self.captures.get(capture)
                if entry.is_live:
                    raise
        return _same_end(entry, completion), False

    async def _screened(self, metadata: CaptureMetadata) -> CaptureMetadata:
        """Return the metadata as the tenant stores it. Raises `SecretsFound`."""
        tenant = self.captures.tenant
        workers = self.captures.archive.upload_workers(tenant.name)
        return await screened_metadata(metadata, tenant.limits.redaction, workers)

    async def _complete(self, entry: Entry, completion: wire.Completion) -> Entry:
        archive = self.captures.archive
        sha256 = await self._digest(entry, completion)
        ending = Ending(
            state=State(completion.state),
            sha256=sha256,
            status=completion.status,
            exit_code=completion.exit_code,
            labels=completion.labels,
        )
        if not await archive.catalog.end_live(entry.tenant, entry.id, completion.offset, ending.encode()):
            accepted = (await progress(archive, entry)).accepted
            raise WrongOffset(completion.offset, accepted, is_end=True)
        await self.flusher.schedule.after(0, entry.tenant, entry.id)  # if this process dies now
        finished = await self.flusher.finish(entry.tenant, entry.id)
        return finished or await self.captures.get(entry.id)

    async def _digest(self, entry: Entry, completion: wire.Completion) -> bytes:
        """Return the SHA-256 of the whole capture. Raises `WrongOffset`, `DigestMismatch`."""
        archive = self.captures.archive
        with BufferMemory(archive.memory.buffers, entry.tenant) as memory:
            entry, record = await self._whole_record(entry, completion.offset, memory)
            if record.accepted != completion.offset:
                raise WrongOffset(completion.offset, record.accepted, is_end=True)
            require_small(entry, completion)
            sha256 = await self.flusher.digests.whole(archive, entry, record.buffer)
        if completion.sha256 not in (None, sha256.hex()):
            raise DigestMismatch(
                f"the content of {record.accepted} bytes has SHA-256 {sha256.hex()}, announced "
                f"{completion.sha256}; it is still live"
            )
        return sha256

    async def _whole_record(
        self, entry: Entry, offset: int, memory: BufferMemory
    ) -> tuple[Entry, LiveRecord]:
        """Return the entry, and the record that goes on where it ends: without bytes if it ends elsewhere."""
        archive = self.captures.archive
        for _ in range(TRIES + 1):
            record = await archive.catalog.live(entry.tenant, entry.id, limit=memory.room)
            if record is None:
                record = await reopened(archive, entry)
            size = record.accepted - record.durable
            if record.durable == entry.size and (size <= memory.room or record.accepted != offset):
                return entry, record
            if size > memory.room:
                await memory.cover(size)
            entry = await self._entry(entry.id)
        raise CatalogUnavailable("the capture changes faster than it can be read; try again")


def _same_end(entry: Entry, completion: wire.Completion) -> Entry:
    """Return the entry if the capture has ended as its producer says. Raises `NotLive`."""
    announced = completion.sha256 in (None, entry.sha256.hex())
    if (entry.state, entry.size) == (completion.state, completion.offset) and announced:
        return entry
    raise NotLive(f"{entry.id} has ended as {entry.state.value}, with another size or content")
