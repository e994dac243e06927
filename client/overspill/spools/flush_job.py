"""Automatic flushes: in the background of a guard, and at the end of a command.

    .flush    in each folder: locked by the one process that flushes. It holds the time until which commands
              leave the service alone because it did not answer in time, in seconds since the epoch

So if a service does not answer, all commands together wait for it only once in half a minute.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from overspill.errors import OverspillError, verdicts
from overspill.errors.client_errors import NotSpooled
from overspill.spools import files, own_directory
from overspill.spools.absence import Absence
from overspill.spools.flush import Flush, Flushed
from overspill.transfer.caller import load_transport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.spools.partition import Partition
    from overspill.transfer.sync import SyncClient

_LOCK: Final = ".flush"
FORBIDDEN_RETRY_SECONDS: Final = 300.0
"""Seconds until uploads that a key or a limit forbids are tried again."""
RETRY_SECONDS: Final = 30.0
"""Seconds until captures that another process uploads, or that failed by themselves, are tried again."""
_ASSUMED_BYTES_PER_SECOND: Final = 4 * 1024 * 1024
"""The assumed rate of uploads. Captures that would take too long at this rate are skipped."""
_PAUSE_SECONDS: Final = 30.0
"""Seconds for which commands do not use the service after it failed slowly."""
_SLOW_SECONDS: Final = 0.5
"""A flush that failed after more seconds failed slowly."""
OWN_FLUSH_SECONDS: Final = 0.2
"""Seconds to wait for another flush of this process, which ends when its guard is closed."""


def job(partition: Partition, client: SyncClient) -> float | None:
    """Flush as a background job. Return the seconds until the next flush, or None if nothing waits.

    Raises the `OverspillError` that stopped the flush.
    """
    if pause := Absence(partition).pause():
        return pause
    flushed = None
    with suppress(NotSpooled):
        flushed = _flushed(partition, client)
    if flushed is None or isinstance(flushed.failure, verdicts.FORBIDDING):
        return RETRY_SECONDS if flushed is None else FORBIDDEN_RETRY_SECONDS
    if flushed.failure is not None:
        raise flushed.failure
    return RETRY_SECONDS if flushed.elsewhere or flushed.postponed else None


def _flushed(partition: Partition, client: SyncClient) -> Flushed:
    """Flush. Raises `NotSpooled` if another process flushes or the spool cannot be read, and `OSError`."""
    flush = Flush(partition, client)
    if partition.exists():
        with _alone(partition):
            flush.run()
    return flush.result


def flush_shortly(
    partition: Partition, client: SyncClient, seconds: float, *, lock_timeout: float = OWN_FLUSH_SECONDS
) -> Flushed:
    """Upload as much as possible within `seconds`. Do nothing if another process uploads. Raises nothing.

    Also do nothing for a while after a slow failure, and skip captures that would take longer. `client`
    should have a timeout of at most `seconds`. An upload that has not ended then is given up, and stays in
    the spool. `lock_timeout` is how many seconds to wait for another flush to end.
    """
    flush = Flush(partition, client, largest=int(seconds * _ASSUMED_BYTES_PER_SECOND))
    if _is_nothing_to_do(partition):
        return flush.result
    try:
        load_transport()  # importing takes time that does not count
    except ImportError:  # this package was replaced or removed meanwhile: the next process uploads
        return flush.result
    thread = threading.Thread(
        target=_flush_quietly, args=[partition, flush, lock_timeout], name="overspill-flush", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # the process has threads enough, or is ending
        return flush.result
    thread.join(seconds)
    flush.stop()
    if thread.is_alive() and flush.result.uploaded:  # it was cut off, and nothing is wrong with the service
        _resume(partition)
    return flush.result


def _is_nothing_to_do(partition: Partition) -> bool:
    """Return whether nothing waits, or the service must not be used now."""
    try:
        return partition.is_empty() or Absence(partition).pause() > 0
    except (NotSpooled, OSError):
        return True


def _resume(partition: Partition) -> None:
    with suppress(OSError), files.opened(partition.folder.path) as directory:
        descriptor = os.open(_LOCK, os.O_WRONLY | files.NO_LINKS, dir_fd=directory)
        try:
            _FlushLock(descriptor).resume()
        finally:
            os.close(descriptor)


def _flush_quietly(partition: Partition, flush: Flush, lock_timeout: float) -> None:
    with (
        suppress(NotSpooled, OSError, OverspillError, RuntimeError),  # RuntimeError: the client was closed
        _alone(partition, lock_timeout) as flush_lock,
    ):
        if flush_lock.is_due():
            flush_lock.pause()  # first: the process may end before the flush does
            began = time.monotonic()
            flush.run()
            if flush.result.failure is None or time.monotonic() - began < _SLOW_SECONDS:
                flush_lock.resume()


class _FlushLock:
    """The open `.flush` file of a folder, for the process that has it locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def is_due(self) -> bool:
        """Return whether no flush has failed slowly in the last half minute."""
        text = os.pread(self._descriptor, 32, 0).strip()
        return not 0 < (int(text) if text.isdigit() else 0) - time.time() <= _PAUSE_SECONDS

    def pause(self) -> None:
        """Keep commands from flushing for half a minute."""
        os.pwrite(self._descriptor, b"%020d\n" % int(time.time() + _PAUSE_SECONDS), 0)

    def resume(self) -> None:
        os.pwrite(self._descriptor, b"%020d\n" % 0, 0)


@contextmanager
def _alone(partition: Partition, lock_timeout: float = 0.0) -> Iterator[_FlushLock]:
    """Lock out every other flush of the partition. Raises `Busy` if another process or thread flushes."""
    with own_directory.locked(partition.folder.path / _LOCK, lock_timeout) as descriptor:
        yield _FlushLock(descriptor)
