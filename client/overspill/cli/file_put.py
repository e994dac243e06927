"""Stores a file or standard input as a whole, for `put`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Final

from msgspec import structs

from overspill import wire
from overspill.cli import output
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.failures import message_of
from overspill.cli.masked_file import masked_file
from overspill.cli.progress import file_with_progress
from overspill.errors import Internal, OverspillError, TooManyRequests, Unavailable, Unreachable
from overspill.errors.client_errors import NotSpooled
from overspill.live.labels import redacted_label
from overspill.redaction.masking import counts_text
from overspill.spools.capture import LocalCapture
from overspill.text.buffer import Buffer, CannotBuffer
from overspill.text.long_files import long_file_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.cli.invocation import Invocation
    from overspill.cli.masked_file import MaskedFile
    from overspill.cli.progress import ProgressFile
    from overspill.live.ports import Description
    from overspill.spools.entries import Spooled
    from overspill.spools.partition import Partition

_ROUNDING_SECONDS: Final = 2
_TOLERANCE_SECONDS: Final = 90
_TOLERANCE_SHARE: Final = 0.03
"""A lifetime that differs by no more than this is what was asked for."""
_SERVICE_AWAY: Final = (Unreachable, Unavailable, Internal, TooManyRequests)
"""Failures of the service after which the content is kept on this machine."""
_READ_BYTES: Final = 1024 * 1024


def put_file(invocation: Invocation, file: str, description: Description, *, is_exact: bool = False) -> None:
    """Store the content of a file, - for standard input, and print its handle.

    `description` is what is stored with it; it has no id yet. Secrets are masked as the policy says, unless
    `is_exact`. Raises `OSError`, `CommandFailure`, and what storing raises.
    """
    redactor = None if is_exact else invocation.policy().redactor()
    with (
        _open_rereadable(file) as source,
        file_with_progress(source) as shown,
        masked_file(shown, redactor) as content,
    ):
        labels = {**description.labels, **redacted_label(content.masked, description)}
        description = structs.replace(description, labels=labels)
        entry = _stored(invocation, content, description)
    if content.masked:
        kinds = counts_text(content.masked)
        output.say(f"secrets were masked: {kinds}; with --exact the bytes are stored as they are")
    if not invocation.answered(entry):
        output.line(entry.id)
    _warn_of_ignored_options(entry, description)


@contextmanager
def _open_rereadable(file: str) -> Iterator[IO[bytes]]:
    """Open a binary file that can be read twice. The content of a pipe is copied to a temporary file."""
    with _source(file) as opened, ExitStack() as stack:
        if opened.seekable():
            yield opened
            return
        copy = stack.enter_context(TemporaryFile(prefix="overspill-put-", dir=long_file_folder()))
        copyfileobj(opened, copy)
        copy.seek(0)
        yield copy


def _warn_of_ignored_options(entry: wire.Entry, description: Description) -> None:
    ignored = _ignored_options(entry, description)
    if ignored:
        changing = "changes" if len(ignored) == 1 else "change"
        output.say(
            f"{entry.id} was stored before, and stays as it was: {_in_words(ignored)} {changing} nothing; "
            "another --call-id makes another capture, `overspill ttl` changes how long it lives"
        )


def _ignored_options(entry: wire.Entry, description: Description) -> list[str]:
    """Return the options that changed nothing: the same capture was stored before with others."""
    is_other = {
        "--label": bool(description.labels) and entry.labels != description.labels,
        "--tool": bool(description.tool) and entry.tool != wire.fit(description.tool),
        "--status": bool(description.status) and entry.status != wire.fit(description.status),
        "--content-type": bool(description.content_type) and entry.content_type != description.content_type,
        "--ttl": description.ttl is not None and _has_other_lifetime(entry, description.ttl),
    }
    return [option for option, is_so in is_other.items() if is_so]


def _has_other_lifetime(entry: wire.Entry, ttl: int) -> bool:
    """Return whether `ttl` is neither the lifetime it was stored with nor about the one it has from now.

    Storing again extends a lifetime, but not by a minute or a few percent.
    """
    left = (entry.expires - datetime.now(UTC)).total_seconds()
    is_new = abs((entry.expires - entry.created).total_seconds() - ttl) <= _ROUNDING_SECONDS
    return not is_new and abs(left - ttl) > max(_TOLERANCE_SECONDS, _TOLERANCE_SHARE * ttl)


def _in_words(words: list[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _stored(invocation: Invocation, content: MaskedFile, description: Description) -> wire.Entry:
    """Store the content, or keep it on this machine. Raises what storing raises, and `CommandFailure`."""
    start = content.file.tell()
    try:
        with invocation.client() as client:
            return client.put(content.file, sha256=content.sha256, **structs.asdict(description))
    except _SERVICE_AWAY as error:
        content.file.seek(start)
        return _kept_in_spool(invocation, content.file, description, error)


def _kept_in_spool(
    invocation: Invocation, file: IO[bytes] | ProgressFile, description: Description, error: OverspillError
) -> wire.Entry:
    """Keep the content of `file` in the spool, because the service failed with `error`, and say so.

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


def _source(file: str) -> IO[bytes]:
    """Open the binary file. Standard input is left open. Raises `OSError`."""
    if file != "-":
        return Path(file).open("rb")
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return open(sys.stdin.fileno(), "rb", closefd=False)
