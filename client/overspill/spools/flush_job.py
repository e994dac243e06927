"""Flushes that nobody asked for: in the background of a guard, and at the end of a command.

    .flush    in a folder: locked by the one process that flushes; until when commands leave the service
              alone because it did not answer in time, in seconds since the epoch

So a service that is silent costs any number of commands one wait in half a minute.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from overspill.errors import Denied, OverspillError, QuotaExceeded, StoreFull
from overspill.spools import files, own_directory
from overspill.spools.absence import Absence
from overspill.spools.flush import Flush, Flushed
from overspill.spools.own_directory import NotSpooled
from overspill.transfer.client import load_transport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.spools.spool import Partition
    from overspill.transfer.sync import SyncClient

_LOCK: Final = ".flush"
_HOPELESS_FOR_NOW: Final = (Denied, QuotaExceeded, StoreFull)
LATER: Final = 300.0
"""Seconds until uploads are tried again that a key or a limit forbids."""
ELSEWHERE: Final = 30.0
"""Seconds until what another process is uploading, or what failed by itself, is looked at again."""
_SLOWEST: Final = 4 * 1024 * 1024
"""Bytes a second that an upload is thought to make."""
_PAUSE: Final = 30.0
"""Seconds for which commands leave a service alone that failed slowly."""
_SLOW: Final = 0.5
OWN: Final = 0.2
"""Seconds within which what was closed in this process ends its flush."""


def job(partition: Partition, client: SyncClient) -> float | None:
    """Flush as a job in the background: return the seconds until the next flush, or None if nothing waits.

    Raises the `OverspillError` that stopped it.
    """
    if pause := Absence(partition).pause():
        return pause
    flushed = None
    with suppress(NotSpooled):
        flushed = _flushed(partition, client)
    if flushed is None or isinstance(flushed.failure, _HOPELESS_FOR_NOW):
        return ELSEWHERE if flushed is None else LATER
    if flushed.failure is not None:
        raise flushed.failure
    return ELSEWHERE if flushed.elsewhere or flushed.postponed else None


def _flushed(partition: Partition, client: SyncClient) -> Flushed:
    """Raises `NotSpooled` if another process is at it or the spool cannot be read, and `OSError`."""
    flush = Flush(partition, client)
    if partition.exists():
        with _alone(partition):
            flush.run()
    return flush.done


def flush_shortly(
    partition: Partition, client: SyncClient, seconds: float, *, lock_timeout: float = OWN
) -> Flushed:
    """Upload what can be uploaded within so many seconds; do nothing if another process does.

    Also do nothing for a while after a slow failure, and pass over captures that may take longer. `client`
    should not wait longer than that for an answer. What is going on at the end is given up, and stays in
    the spool. `lock_timeout` is how many seconds another flush may go on before. Raises nothing.
    """
    flush = Flush(partition, client, largest=int(seconds * _SLOWEST))
    if _is_nothing_to_do(partition):
        return flush.done
    load_transport()  # which is no part of the time
    thread = threading.Thread(
        target=_flush_quietly, args=[partition, flush, lock_timeout], name="overspill-flush", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # the process has threads enough, or is ending
        return flush.done
    thread.join(seconds)
    flush.stop()
    if thread.is_alive() and flush.done.uploaded:  # it was cut off, and nothing is wrong with the service
        _resume(partition)
    return flush.done


def _is_nothing_to_do(partition: Partition) -> bool:
    """Return whether nothing waits, or the service is left alone."""
    try:
        return partition.is_empty() or Absence(partition).pause() > 0
    except (NotSpooled, OSError):
        return True


def _resume(partition: Partition) -> None:
    with suppress(OSError), files.opened(partition.folder.path) as directory:
        descriptor = os.open(_LOCK, os.O_WRONLY | files.NO_LINKS, dir_fd=directory)
        try:
            _Turn(descriptor).resume()
        finally:
            os.close(descriptor)


def _flush_quietly(partition: Partition, flush: Flush, lock_timeout: float) -> None:
    with (
        suppress(NotSpooled, OSError, OverspillError, RuntimeError),  # RuntimeError: the client was closed
        _alone(partition, lock_timeout) as turn,
    ):
        if turn.is_due():
            turn.pause()  # this thread may not live to see how it ends
            began = time.monotonic()
            flush.run()
            if flush.done.failure is None or time.monotonic() - began < _SLOW:
                turn.resume()


class _Turn:
    """The lock file of the process that flushes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def is_due(self) -> bool:
        """Return whether no flush has failed slowly just now."""
        text = os.pread(self._descriptor, 32, 0).strip()
        return not 0 < (int(text) if text.isdigit() else 0) - time.time() <= _PAUSE

    def pause(self) -> None:
        """Let no command try again for a while."""
        os.pwrite(self._descriptor, b"%020d\n" % int(time.time() + _PAUSE), 0)

    def resume(self) -> None:
        os.pwrite(self._descriptor, b"%020d\n" % 0, 0)


@contextmanager
def _alone(partition: Partition, lock_timeout: float = 0.0) -> Iterator[_Turn]:
    """Raises `Busy` if another process, or thread, flushes."""
    with own_directory.locked(partition.folder.path / _LOCK, lock_timeout) as descriptor:
        yield _Turn(descriptor)
