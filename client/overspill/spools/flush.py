"""Spooled captures on their way to the service, each with its own id: sent twice it is stored once.

The local copy goes only when the service has said that the capture is durable, with the digest that was
computed when it was captured.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Final

from msgspec import structs

from overspill.errors import (
    BadRequest,
    Deleted,
    Denied,
    DigestMismatch,
    Expired,
    IncompleteBody,
    MethodNotAllowed,
    OverspillError,
    ProtocolError,
    QuotaExceeded,
    Refused,
    StoreFull,
    TooManyRequests,
)
from overspill.spools.own_directory import NotSpooled, lock

if TYPE_CHECKING:
    from overspill.spools.folder import Spooled
    from overspill.spools.spool import Shelf
    from overspill.sync import SyncClient

_PERMANENT: Final = (BadRequest, Refused, Deleted, Expired)
_PASSING: Final = (DigestMismatch, IncompleteBody, MethodNotAllowed, TooManyRequests, QuotaExceeded)
"""Of those the ones that may end: damage on the way, another server in between, load, a limit."""
_HOPELESS_FOR_NOW: Final = (Denied, QuotaExceeded, StoreFull)
LATER: Final = 300.0
"""Seconds until uploads are tried again that a key or a limit forbids."""
ELSEWHERE: Final = 30.0
"""Seconds until those are looked at again that another process is uploading."""
_BLOCK: Final = 1024 * 1024

log = logging.getLogger("overspill")


@dataclass(slots=True)
class Flushed:
    """What became of the captures of a shelf. `failure` is why the uploads stopped, where they did."""

    uploaded: int = 0
    size: int = 0
    refused: int = 0
    elsewhere: int = 0
    left: int = 0
    failure: OverspillError | None = None

    def __add__(self, other: Flushed) -> Flushed:
        return Flushed(
            uploaded=self.uploaded + other.uploaded,
            size=self.size + other.size,
            refused=self.refused + other.refused,
            elsewhere=self.elsewhere + other.elsewhere,
            left=self.left + other.left,
            failure=self.failure or other.failure,
        )


def is_permanent(error: Exception) -> bool:
    """Whether the service will never take the capture that it answered this about."""
    return isinstance(error, _PERMANENT) and not isinstance(error, _PASSING)


def flush(shelf: Shelf, client: SyncClient, *, again: bool = False) -> Flushed:
    """Upload what waits, oldest first, up to the first failure that is not about one capture alone.

    `again` also tries those that the service refused. Raises `NotSpooled` and `OSError` where the spool
    cannot be read.
    """
    flushed = Flushed()
    if shelf.exists():
        shelf.spool.room.tidy_if_due()
    waiting = [entry for entry in shelf.entries() if again or not entry.refused]
    for number, entry in enumerate(waiting):
        try:
            _count(flushed, entry, sent=_sent(shelf, entry, client))
        except OverspillError as error:
            if not is_permanent(error):
                flushed.failure, flushed.left = error, len(waiting) - number
                break
            _refuse(shelf, entry, str(error))
            flushed.refused += 1
    return flushed


def _refuse(shelf: Shelf, entry: Spooled, why: str) -> None:
    """Keep it, but upload it no more."""
    shelf.amend(structs.replace(entry, refused=why))
    log.warning("the spooled capture %s will not be uploaded: %s", entry.id, why)


def _count(flushed: Flushed, entry: Spooled, *, sent: bool) -> None:
    flushed.uploaded += sent
    flushed.size += entry.size if sent else 0
    flushed.elsewhere += not sent


def _sent(shelf: Shelf, entry: Spooled, client: SyncClient) -> bool:
    """Whether the capture was uploaded; False where another process is at it or was."""
    try:
        raw = shelf.open(entry)
    except FileNotFoundError:
        return False
    with io.BufferedReader(raw) as file:  # type: ignore[type-var]  # typeshed wants RawIOBase
        if not lock(file.fileno()) or shelf.find(entry.id) is None:
            return False
        if not _is_whole(file, entry):
            _refuse(shelf, entry, "its bytes were damaged on this machine's disk")
            return False
        _put(file, entry, client)
        shelf.uploaded(entry)
    return True


def _is_whole(file: IO[bytes], entry: Spooled) -> bool:
    state = hashlib.sha256()
    while block := file.read(_BLOCK):
        state.update(block)
    file.seek(0)
    return state.hexdigest() == entry.sha256


def _put(file: IO[bytes], entry: Spooled, client: SyncClient) -> None:
    stored = client.put(
        file,
        id=entry.id,
        call_id=entry.call_id,
        session=entry.session,
        tool=entry.tool,
        status=entry.status,
        content_type=entry.content_type,
        ttl=_left(entry),
    )
    if stored.sha256 != entry.sha256:
        raise ProtocolError(f"the service stored {entry.id} with another digest than it was captured with")


def _left(entry: Spooled) -> int | None:
    """Seconds that the capture has still to live, where it was given any."""
    if entry.ttl is None:
        return None
    return max(1, math.ceil((entry.expires - datetime.now(UTC)).total_seconds()))


def job(shelf: Shelf, client: SyncClient) -> float | None:
    """`flush` as a courier's job."""
    flushed = None
    with suppress(NotSpooled):
        flushed = flush(shelf, client)
    if flushed is None:  # others keep the spool busy
        return ELSEWHERE
    if isinstance(flushed.failure, _HOPELESS_FOR_NOW):
        return LATER
    if flushed.failure is not None:
        raise flushed.failure
    return ELSEWHERE if flushed.elsewhere else None
