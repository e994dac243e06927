"""Keeps in the spool what `put` cannot store, because the service is away."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.exit_codes import CommandFailure, ExitCode, message_of
from overspill.errors import Internal, OverspillError, TooManyRequests, Unavailable, Unreachable
from overspill.errors.client_errors import NotSpooled
from overspill.live.ports import Description
from overspill.spools.capture import LocalCapture
from overspill.spools.new_entry import Digested, new_entry
from overspill.text.buffer import Buffer, CannotBuffer
from overspill.text.encoding import bytes_of

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.cli.progress import ProgressFile
    from overspill.spools.entries import Spooled
    from overspill.spools.partition import Partition
    from overspill.text.body import Body

SERVICE_AWAY: Final = (Unreachable, Unavailable, Internal, TooManyRequests)
"""Failures of the service after which `put` keeps the content on this machine."""
_READ_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class CaptureMetadata:
    """What is stored with a capture, as `put` is given it."""

    session: str
    tool: str = ""
    call_id: str = ""
    ttl: int | None = None
    status: str = ""
    content_type: str | None = None
    labels: dict[str, str] = field(default_factory=dict)

    def entry(self, body: Body, *, url: str, reason: str) -> Spooled:
        """Return the description of a capture of `body` that waits for the service at `url`, and why."""
        kept = Digested.of(body)
        description = self.description(id=wire.capture_id(self.session, self.call_id, kept.sha256))
        return new_entry(description, kept, datetime.now(UTC), url=url, reason=reason)

    def description(self, *, id: str) -> Description:  # noqa: A002  (the field's own name)
        """Return what is told of a capture with this id."""
        return Description(
            id=id,
            session=self.session,
            call_id=self.call_id,
            tool=self.tool,
            status=self.status,
            content_type=self.content_type or "",
            ttl=self.ttl,
            labels=self.labels,
        )


def keep_in_spool(
    invocation: Invocation, file: IO[bytes] | ProgressFile, metadata: CaptureMetadata, error: OverspillError
) -> wire.Entry:
    """Keep the content of `file` in the spool, because the service failed with `error`, and say so.

    Raises `error` if there is no spool, and `CommandFailure` if the spool cannot take it.
    """
    partition = invocation.partition()
    if partition is None:
        raise error
    try:
        entry = _spooled(partition, file, metadata, str(error))
    except NotSpooled as why:
        raise CommandFailure(
            f"{message_of(error)}. It was not kept on this machine: {why}", ExitCode.UNAVAILABLE
        ) from None
    output.say(f"{entry.id} is on this machine only, until it is uploaded: {error}")
    with LocalCapture(entry, partition.open(entry)) as capture:
        return capture.get()


def _spooled(
    partition: Partition, file: IO[bytes] | ProgressFile, metadata: CaptureMetadata, reason: str
) -> Spooled:
    buffer = Buffer()
    try:
        while block := file.read(_READ_BYTES):
            buffer.write(block)
        body = buffer.finish()
    except CannotBuffer as full:
        raise NotSpooled(f"the disk for temporary files is full: {full}") from None
    finally:
        buffer.close()
    if buffer.missing:
        raise NotSpooled(f"the disk for temporary files is full: {buffer.missing}")
    entry = metadata.entry(body, url=partition.url, reason=reason)
    partition.add(entry, bytes_of(body) if isinstance(body, str) else body)
    return entry
