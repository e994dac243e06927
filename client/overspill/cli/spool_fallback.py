"""Keeps in the spool what `put` cannot store, because the service is away."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from overspill.cli import output
from overspill.cli.exit_codes import CommandFailure, ExitCode, message_of
from overspill.errors import Internal, OverspillError, TooManyRequests, Unavailable, Unreachable
from overspill.errors.client_errors import NotSpooled
from overspill.spools.capture import LocalCapture
from overspill.text.buffer import Buffer, CannotBuffer

if TYPE_CHECKING:
    from overspill import wire
    from overspill.cli.invocation import Invocation
    from overspill.cli.progress import ProgressFile
    from overspill.live.ports import Description
    from overspill.spools.entries import Spooled
    from overspill.spools.partition import Partition

SERVICE_AWAY: Final = (Unreachable, Unavailable, Internal, TooManyRequests)
"""Failures of the service after which `put` keeps the content on this machine."""
_READ_BYTES: Final = 1024 * 1024


def keep_in_spool(
    invocation: Invocation, file: IO[bytes] | ProgressFile, description: Description, error: OverspillError
) -> wire.Entry:
    """Keep the content of `file` in the spool, because the service failed with `error`, and say so.

    The `description` has no id yet.

    Raises `error` if there is no spool, and `CommandFailure` if the spool cannot take it.
    """
    partition = invocation.partition()
    if partition is None:
        raise error
    try:
        entry = _spooled(partition, file, description, str(error))
    except NotSpooled as why:
        raise CommandFailure(
            f"{message_of(error)}. It was not kept on this machine: {why}", ExitCode.UNAVAILABLE
        ) from None
    output.say(f"{entry.id} is on this machine only, until it is uploaded: {error}")
    with LocalCapture(entry, partition.open(entry)) as capture:
        return capture.get()


def _spooled(
    partition: Partition, file: IO[bytes] | ProgressFile, description: Description, reason: str
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
    return partition.keep_body(description, body, reason)
