"""Uploads spooled captures, each under its own id, so a capture that is sent twice is stored once.

The local copy is removed only after the service has answered that the capture is durable, with the digest
that was computed when it was spooled. A capture that fails again and again does not hold up the others: it is
tried again later and later, and its entry remembers that for all processes.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final

from msgspec import structs

from overspill.errors import OverspillError, ProtocolError, TooManyRequests, verdicts
from overspill.execution import tracing
from overspill.execution.backoff import Backoff
from overspill.spools.own_directory import LockedFile
from overspill.text import quantities
from overspill.transfer.live_calls import give_up
from overspill.transfer.sync import running
from overspill.wire import MAX_LABELS, SPOOLED_LABEL

if TYPE_CHECKING:
    from overspill.spools.entries import Spooled
    from overspill.spools.partition import Partition
    from overspill.transfer.sync import SyncClient

_SERVICE_FAILURES: Final = (*verdicts.FORBIDDING, TooManyRequests)
"""Failures that the next capture would meet too."""
_MAX_FAILED_IN_A_ROW: Final = 3
"""After this many failed captures in a row, the service itself counts as failing."""
_BACKOFF: Final = Backoff(first=30.0, longest=3600.0)
"""Seconds until a failed capture is sent again, doubled with each failure."""
_BLOCK: Final = 1024 * 1024

log: Final = logging.getLogger("overspill")


@dataclass(slots=True)
class Flushed:
    """The outcome of a flush, in captures. `size` is the bytes of those that were uploaded.

    `refused`: the service will never take them. `postponed`: each failed by itself. `elsewhere`: another
    process uploads them. `left`: they were not tried. `failure` is why the flush stopped early, if it did.
    """

    uploaded: int = 0
    size: int = 0
    refused: int = 0
    elsewhere: int = 0
    postponed: int = 0
    left: int = 0
    failure: OverspillError | None = None

    def __add__(self, other: Flushed) -> Flushed:
        return Flushed(
            uploaded=self.uploaded + other.uploaded,
            size=self.size + other.size,
            refused=self.refused + other.refused,
            elsewhere=self.elsewhere + other.elsewhere,
            postponed=self.postponed + other.postponed,
            left=self.left + other.left,
            failure=self.failure or other.failure,
        )


def flush(partition: Partition, client: SyncClient, *, again: bool = False) -> Flushed:
    """Upload waiting captures, oldest first. Stop at the first failure that the next capture would meet too.

    With `again`, also try captures that the service refused, and those whose next try is not due yet. Raises
    `NotSpooled` and `OSError` if the spool cannot be read.
    """
    flush = Flush(partition, client, again=again)
    flush.run()
    return flush.result


class Flush:
    """One flush. Other threads may read `result` and call `stop` while it runs.

    Captures of more than `largest` bytes are skipped.
    """

    def __init__(
        self, partition: Partition, client: SyncClient, *, again: bool = False, largest: int | None = None
    ) -> None:
        self.result: Flushed = Flushed()
        self._partition, self._client, self._again, self._largest = partition, client, again, largest
        self._failed_in_a_row = 0
        self._is_stopped = False

    def stop(self) -> None:
        """Begin no further upload."""
        self._is_stopped = True

    def run(self) -> None:
        """Upload waiting captures. Raises `NotSpooled` and `OSError` if the spool cannot be read."""
        if not self._partition.exists():
            return
        self._partition.tidy_if_due()
        stored = self._partition.folder.stored_files()
        for number, each in enumerate(stored):
            entry = self._partition.find(each.id)
            if entry is None or not self._is_due(entry):
                continue
            if self._is_stopped or not self._try(entry):
                self.result.left = len(stored) - number
                break
        if self.result.uploaded:
            size = quantities.readable_size(self.result.size)
            log.info("uploaded %d captures (%s) that waited in the spool", self.result.uploaded, size)

    def _is_due(self, entry: Spooled) -> bool:
        if self._largest is not None and entry.size > self._largest:
            return False
        return self._again or not (entry.refused or _is_postponed(entry))

    def _try(self, entry: Spooled) -> bool:
        """Upload one capture. Return whether to go on with the next."""
        try:
            is_sent = self._send(entry)
        except OverspillError as error:
            return self._note_failure(error, entry)
        self._failed_in_a_row = 0
        self.result.uploaded += is_sent
        self.result.size += entry.size if is_sent else 0
        self.result.elsewhere += not is_sent
        return True

    def _note_failure(self, error: OverspillError, entry: Spooled) -> bool:
        """Refuse or postpone the capture, or stop the flush. Return whether to go on with the next."""
        if verdicts.is_permanent(error):
            self._refuse(entry, str(error))
            self.result.refused += 1
            return True
        if isinstance(error, _SERVICE_FAILURES) or not self._client.ready():
            self.result.failure = error
            return False
        self._postpone(entry, error)
        self._failed_in_a_row += 1
        if self._failed_in_a_row == _MAX_FAILED_IN_A_ROW:
            self.result.failure = error
        return self._failed_in_a_row < _MAX_FAILED_IN_A_ROW

    def _refuse(self, entry: Spooled, reason: str) -> None:
        """Keep a capture, and note in its entry that it must not be uploaded."""
        self._partition.amend(structs.replace(entry, refused=reason))
        log.warning("the spooled capture %s will not be uploaded: %s", entry.id, reason)

    def _postpone(self, entry: Spooled, error: OverspillError) -> None:
        pause = _BACKOFF.bound(entry.failures)
        later = datetime.now(UTC) + timedelta(seconds=pause)
        self._partition.amend(structs.replace(entry, failures=entry.failures + 1, next_try=later))
        self.result.postponed += 1
        log.info("the spooled capture %s could not be uploaded, again in %d s: %s", entry.id, pause, error)

    def _send(self, entry: Spooled) -> bool:
        """Upload a capture. Return False if another process uploads it, or has done so."""
        try:
            raw = self._partition.open(entry)
        except FileNotFoundError:
            return False
        locked = LockedFile.of(raw)
        if locked is None:
            return False
        with locked:
            file = io.BufferedReader(raw)  # type: ignore[type-var]  # typeshed wants RawIOBase
            if self._partition.find(entry.id) is None:
                return False
            if not _is_whole(file, entry):
                self._refuse(entry, "its bytes were damaged on this machine's disk")
                return False
            try:
                with tracing.span("overspill flush", attributes=_attributes(entry), link=entry.traceparent):
                    _put(file, entry, self._client)
            except ValueError as error:  # no service is asked for what the wire has no room for
                self._refuse(entry, f"what is known of it was damaged on this machine's disk: {error}")
                return False
            self._partition.uploaded(entry)
        return True


def _is_postponed(entry: Spooled) -> bool:
    """Return whether its next try is in the future.

    If it is too far away for a pause, a clock was set back.
    """
    if entry.next_try is None:
        return False
    return 0 < (entry.next_try - datetime.now(UTC)).total_seconds() <= _BACKOFF.longest


def _is_whole(file: IO[bytes], entry: Spooled) -> bool:
    state = hashlib.sha256()
    while block := file.read(_BLOCK):
        state.update(block)
    file.seek(0)
    return state.hexdigest() == entry.sha256


def _attributes(entry: Spooled) -> dict[str, str | int]:
    return {
        "gen_ai.tool.name": tracing.text(entry.tool),
        "overspill.capture.id": tracing.text(entry.id),
        "overspill.output.size": entry.size,
    }


def _put(file: IO[bytes], entry: Spooled, client: SyncClient) -> None:
    if entry.producer:  # the whole completes the beginning that the service has, once that has ended
        calls, asynchronous = running(client)
        calls.run(give_up(asynchronous, entry.id, entry.producer))
    stored = client.put(
        file,
        id=entry.id,
        call_id=entry.call_id,
        session=entry.session,
        tool=entry.tool,
        status=entry.status,
        labels=_labels(entry),
        content_type=entry.content_type,
        ttl=_seconds_left(entry),
    )
    if not stored.is_of(entry.sha256):
        raise ProtocolError(f"the service stored {entry.id} with another digest than it was captured with")


def _labels(entry: Spooled) -> dict[str, str]:
    """Return the labels, with one that says since when the capture waited, if there is room for it."""
    if len(entry.labels) >= MAX_LABELS:
        return entry.labels
    return {**entry.labels, SPOOLED_LABEL: entry.created.isoformat(timespec="seconds")}


def _seconds_left(entry: Spooled) -> int | None:
    """Return the seconds for which the capture may still live, or None if the service chooses its `ttl`."""
    if entry.ttl is None:
        return None
    return max(1, math.ceil((entry.expires - datetime.now(UTC)).total_seconds()))
