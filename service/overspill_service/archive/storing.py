"""Store a capture: the order of steps that makes it durable before it is acknowledged.

    bytes ──► segments in the object store ──► last segment: the commit ──► catalog ──► acknowledged

A failure before the request to the catalog deletes the objects. After it the answer may be lost although the
entry was committed, so the objects stay; the sweep finds out whether they are needed. A body that was
received whole is stored to the end even if the client hangs up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct
from overspill import wire
from overspill.reading.content_kind import detect
from overspill.wire import State

from overspill_service.archive import retention
from overspill_service.archive.captures import check_id
from overspill_service.archive.committing import (
    conflict,
    existing_entry,
    finish,
    latest_expiry,
    renew,
    require_same,
    supersede,
)
from overspill_service.archive.lifetimes import require_free
from overspill_service.archive.metadata import screened, with_masked
from overspill_service.archive.recovery.expiries import with_known_expiry
from overspill_service.archive.reservations import Reservation
from overspill_service.archive.upload_leases import renewing
from overspill_service.archive.uploading import Upload
from overspill_service.archive.verification import is_intact, verifying
from overspill_service.catalog.quotas import TOTALS_INCOMPLETE
from overspill_service.catalog.records import Entry
from overspill_service.errors import (
    CatalogIncomplete,
    CatalogUnavailable,
)
from overspill_service.resources.tasks import run_to_completion
from overspill_service.store_format import object_keys
from overspill_service.store_format.ingest import Ingest
from overspill_service.store_format.screening import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from overspill_service.archive.captures import Captures
    from overspill_service.archive.metadata import CaptureMetadata
    from overspill_service.archive.upload_memory import UploadMemory
    from overspill_service.archive.verification import Verification

DEFAULT_TYPE = "text/plain; charset=utf-8"
BINARY_TYPE = "application/octet-stream"


class OnStored(Protocol):
    """A callback for each capture that was stored, or that was already there."""

    def __call__(self, entry: Entry, *, is_new: bool) -> None: ...


class UploadBody(Struct, frozen=True):
    """An uploaded body: chunks, memory, `Content-Encoding`, the announced SHA-256 and size of the content."""

    chunks: AsyncIterator[bytes]
    memory: UploadMemory
    encoding: str | None = None
    digest: bytes | None = None
    size: int = 0
    """0 if it was not announced."""


async def put(
    captures: Captures,
    capture: str,
    metadata: CaptureMetadata,
    body: UploadBody,
    on_stored: OnStored,
) -> tuple[Entry, bool]:
    """Store a body under an id. Return the entry, and whether it is new.

    `on_stored` gets both too, even if the caller is cancelled while the capture is being committed. The same
    content under the same id is stored once, however often and to whichever replica it is sent. A partial
    capture is completed by a body that begins with all of it.

    Raises `IdConflict` for another content, `Held` for a partial capture on hold, `DigestMismatch`,
    `SecretsFound`, `CaptureTooLarge`, `DamagedEncoding`, `QuotaExceeded`, `InvalidId`, `InvalidParameter` for
    a TTL outside the tenant's limits, and `CatalogIncomplete` if the tenant has exact limits and the catalog
    cannot check them.
    """
    check_id(capture)
    metadata = await _metadata(captures, metadata)
    expires = retention.expiry(captures.archive.clock(), metadata.ttl, captures.tenant.limits)
    existing = await existing_entry(captures, capture)
    if existing is not None and existing.state is State.PARTIAL:
        return await _complete(captures, existing, metadata, body, on_stored)
    if existing is not None:
        async with verifying(captures.archive, existing) as verification:
            if await verification.seems_intact():
                repeated = await _repeat(captures, existing, body, expires, verification)
                on_stored(repeated, is_new=False)
                return repeated, False
    upload, ingest = await _receive(captures, capture, body)
    draft = _draft(captures, upload, ingest, metadata, latest_expiry(existing, expires))
    return await run_to_completion(_stored_and_noted(finish(captures, upload, draft), on_stored))


async def post(
    captures: Captures,
    metadata: CaptureMetadata,
    body: UploadBody,
    on_stored: OnStored,
) -> tuple[Entry, bool]:
    """Store a body under the id of its session, call id and content. Return the entry, and whether it is new.

    `on_stored` gets both too, as in `put`. The id is known only at the end of the body. Until then the
    segments are stored under a random id. A capture of more than one segment is then copied within the store.
    Raises what `put` raises.
    """
    metadata = await _metadata(captures, metadata)
    expires = retention.expiry(captures.archive.clock(), metadata.ttl, captures.tenant.limits)
    upload, ingest = await _receive(captures, object_keys.provisional_id(), body)
    capture = wire.capture_id(metadata.session, metadata.call_id, ingest.sha256)
    draft = _draft(captures, upload, ingest, metadata, expires)
    draft = msgspec.structs.replace(draft, id=capture, sent=b"")  # the id is that of what is stored
    return await run_to_completion(_stored_and_noted(_store_identified(captures, upload, draft), on_stored))


async def _metadata(captures: Captures, metadata: CaptureMetadata) -> CaptureMetadata:
    """Return the metadata as the tenant stores it. Raises `Forbidden`, `SecretsFound`."""
    captures.require_own(metadata.session)
    workers = captures.archive.upload_workers(captures.tenant.name)
    return await screened(metadata, captures.tenant.limits.redaction, workers)


async def _complete(
    captures: Captures, partial: Entry, metadata: CaptureMetadata, body: UploadBody, on_stored: OnStored
) -> tuple[Entry, bool]:
    """Store the whole of a capture whose producer was gone. Bytes that were read before stay the same."""
    if metadata.session != partial.session:
        raise conflict(partial)
    partial = await with_known_expiry(captures.archive, partial)
    require_free(partial)
    upload, ingest = await _receive(captures, partial.id, body, continued=partial)
    expires = retention.expiry(captures.archive.clock(), metadata.ttl, captures.tenant.limits)
    draft = _draft(captures, upload, ingest, metadata, latest_expiry(partial, expires))
    draft = msgspec.structs.replace(
        draft, created=partial.created, marks=partial.marks, last_append=partial.last_append
    )
    return await run_to_completion(_stored_and_noted(supersede(captures, upload, draft, partial), on_stored))


async def _stored_and_noted(
    storing: Coroutine[None, None, tuple[Entry, bool]], on_stored: OnStored
) -> tuple[Entry, bool]:
    entry, is_new = await storing
    on_stored(entry, is_new=is_new)
    return entry, is_new


async def _store_identified(captures: Captures, upload: Upload, draft: Entry) -> tuple[Entry, bool]:
    """Finish an upload whose id is known now. If the id is taken, it has the same content."""
    try:
        existing = await existing_entry(captures, draft.id)
        is_taken = existing is not None and await is_intact(captures.archive, existing)
        if not is_taken:
            await upload.rekey(draft.id)
    except BaseException:
        await upload.discard()
        raise
    if existing is None or not is_taken:
        draft = msgspec.structs.replace(draft, expires=latest_expiry(existing, draft.expires))
        return await finish(captures, upload, draft)
    await upload.discard()
    require_same(existing, draft.sha256)
    return await renew(captures, existing, draft.expires), False


async def _receive(
    captures: Captures,
    capture: str,
    body: UploadBody,
    *,
    continued: Entry | None = None,
) -> tuple[Upload, Ingest]:
    """Receive a whole body. Afterwards all its segments except the last are in the store, or on their way.

    Raises `IdConflict` if it does not begin with the content that is to be `continued`.
    """
    archive = captures.archive
    if captures.quota.needs_totals and not await archive.was_complete():
        raise CatalogIncomplete(TOTALS_INCOMPLETE)
    upload = _upload(captures, capture, object_keys.new_upload(), body)
    ingest = _ingest(captures, body, mark=0 if continued is None else continued.size)
    try:
        await upload.reservation.cover(size=body.size, stored_size=0)
        workers = archive.upload_workers(captures.tenant.name)
        await upload.fill(ingest, renewing(archive, upload, body.chunks), workers)
        ingest.verify(body.digest)
        if continued is not None:
            _require_continued(continued, ingest)
    except BaseException:
        await upload.discard()
        raise
    return upload, ingest


def _require_continued(partial: Entry, ingest: Ingest) -> None:
    if partial.size and ingest.marked != partial.sha256:
        raise conflict(partial)


async def _repeat(
    captures: Captures, existing: Entry, body: UploadBody, expires: float, verification: Verification
) -> Entry:
    """Answer a body for an existing id: read it to the end and compare it, but do not store it."""
    ingest = _ingest(captures, body, is_dry_run=True)
    workers = captures.archive.upload_workers(captures.tenant.name)
    await _upload(captures, existing.id, existing.upload, body).fill(ingest, body.chunks, workers)
    ingest.verify(body.digest)
    require_same(existing, ingest.sha256)
    if not await verification.is_intact():
        raise CatalogUnavailable(
            f"the stored bytes of {existing.id} are damaged; send it again to store it again"
        )
    return await renew(captures, existing, expires)


def _upload(captures: Captures, capture: str, name: str, body: UploadBody) -> Upload:
    archive = captures.archive
    return Upload(
        archive.store,
        archive.cpu,
        body.memory,
        Reservation(archive.catalog, captures.tenant.name, name, captures.quota),
        capture=capture,
    )


def _ingest(captures: Captures, body: UploadBody, *, is_dry_run: bool = False, mark: int = 0) -> Ingest:
    treatment = captures.tenant.limits.redaction
    return Ingest(
        body.encoding,
        level=captures.archive.level,
        limit=captures.tenant.limits.max_capture_size,
        is_dry_run=is_dry_run,
        screen=None if is_dry_run or treatment == "off" else Screen(treatment),
        mark=mark,
    )


def _draft(
    captures: Captures, upload: Upload, ingest: Ingest, metadata: CaptureMetadata, expires: float
) -> Entry:
    """Return the entry as the last segment holds it.

    The segments' positions are missing: the segments have them.
    """
    kind = detect(ingest.head, metadata.content_type or None)
    unfinished = int(ingest.size > 0 and not ingest.ends_in_newline)
    return Entry(
        tenant=captures.tenant.name,
        id=upload.capture,
        upload=upload.name,
        state=State.COMPLETE,
        size=ingest.size,
        lines=upload.newlines + unfinished,
        sha256=ingest.sha256,
        sent=ingest.sent_sha256 if ingest.masked else b"",
        content_type=metadata.content_type or (BINARY_TYPE if kind == "binary" else DEFAULT_TYPE),
        kind=kind,
        tool=metadata.tool,
        session=metadata.session,
        call_id=metadata.call_id,
        status=metadata.status,
        labels=with_masked(metadata.labels, ingest.masked),
        created=round(captures.archive.clock(), 6),
        expires=expires,
        segments=[],
    )
