"""Keeps outputs in spools, several at a time, so that they share their waits for the disk.

Each folder has one writer in this process, whichever guards use it; its batches are written one after
another by one of the threads for blocking work.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.execution.workers import BLOCKING
from overspill.spools.own_directory import NotSpooled

if TYPE_CHECKING:
    from collections.abc import Hashable

    from overspill.execution.waiting import Reply
    from overspill.spools.folder import Spooled
    from overspill.spools.order import Order
    from overspill.spools.spool import Partition

_MOST_AT_ONCE: Final = 32
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""Bytes of one batch, at most: whoever is in it waits for all of it."""

log: Final = logging.getLogger("overspill")


class SpoolWriter:
    """Safe to use from any thread, and from a signal handler."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, begin with no orders: the parent's thread writes its own."""
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._turn = threading.Lock()
        """Held by the one thread that writes; nobody waits for it."""
        self._moved_at = time.monotonic()

    def submit(self, order: Order) -> Reply[Spooled]:
        """Return what becomes the entry, or raises what `Partition.keep` does."""
        self._orders.put(order)
        self._begin()
        return order.done

    def idle_seconds(self) -> float:
        """Return for how long the disk has taken nothing."""
        return time.monotonic() - self._moved_at

    def is_stuck(self, seconds: float) -> bool:
        """Return whether something is to be written and the disk has taken nothing for so long."""
        return self._turn.locked() and self.idle_seconds() >= seconds

    def _begin(self) -> None:
        if self._turn.acquire(blocking=False):
            self._moved_at = time.monotonic()
            BLOCKING.submit(self._serve)

    def _serve(self) -> None:
        while batch := self._batch():
            self._keep_all(batch)
        self._turn.release()
        if not self._orders.empty():  # one that came just then
            self._begin()

    def _keep_all(self, batch: list[Order]) -> None:
        try:
            self._keep([order for order in batch if not order.done.is_cancelled])
        except BaseException as error:
            log.exception("the spool's thread goes on")
            for order in batch:
                _fail(order, NotSpooled(f"the local spool failed: {type(error).__name__}"))
        self._moved_at = time.monotonic()

    def _batch(self) -> list[Order]:
        """Return the next orders; none if there are none."""
        batch: list[Order] = []
        size = 0
        while len(batch) < _MOST_AT_ONCE and size < _BYTES_AT_ONCE:
            try:
                batch.append(self._orders.get_nowait())
            except Empty:
                break
            size += batch[-1].request.size
        return batch

    def _keep(self, batch: list[Order]) -> None:
        results = self._partition.keep_all(batch, on_progress=self._note)
        kept: list[tuple[Order, Spooled]] = []
        for order, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                _fail(order, result)
            else:
                order.done.set_result(result)
                kept.append((order, result))
        if kept:
            BLOCKING.submit(partial(_tell, kept))

    def _note(self) -> None:
        self._moved_at = time.monotonic()


_writers: Final[weakref.WeakValueDictionary[Hashable, SpoolWriter]] = weakref.WeakValueDictionary()


def writer_for(partition: Partition) -> SpoolWriter:
    """Return the writer of this process for the folder of a partition."""
    return _writers.setdefault(partition.identity, SpoolWriter(partition))


def _tell(kept: list[tuple[Order, Spooled]]) -> None:
    """Say what was kept, later: whoever is told may have to wait for others."""
    for order, entry in kept:
        try:
            order.on_kept(entry)
        except Exception:
            log.exception("the spooled capture %s is not uploaded for now", entry.id)


def _fail(order: Order, error: BaseException) -> None:
    if not order.done.done():
        order.done.set_exception(error)
