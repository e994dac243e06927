"""Writes outputs to a spool, several at a time, so that they share their waits for the disk.

Each folder has one writer in this process, which all guards share. One of the threads for blocking work
writes its batches, one after another.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, Final

from overspill.errors.client_errors import NotSpooled
from overspill.execution import forks
from overspill.execution.workers import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from overspill.execution.waiting import Reply
    from overspill.spools.entries import Spooled
    from overspill.spools.order import Order
    from overspill.spools.partition import Partition

_MAX_AT_ONCE: Final = 32
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""The most bytes of one batch, unless one output is larger: each output waits for its whole batch."""

log: Final = logging.getLogger("overspill")


class SpoolWriter:
    """Writes the outputs of one partition. Safe to use from any thread, and from a signal handler."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child without orders: the parent writes its own."""
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._writing = threading.Lock()
        """Held by the one thread that writes. Nobody waits for it."""
        self._moved_at = time.monotonic()

    def submit(self, order: Order) -> Reply[Spooled]:
        """Let an output be written. The reply has the entry, or the `NotSpooled` of `Partition.keep`."""
        self._orders.put(order)
        self._begin()
        return order.reply

    def idle_seconds(self) -> float:
        """Return for how many seconds the disk has taken nothing."""
        return time.monotonic() - self._moved_at

    def is_stuck(self, seconds: float) -> bool:
        """Return whether something is to be written and the disk has taken nothing for `seconds`."""
        return self._writing.locked() and self.idle_seconds() >= seconds

    def _begin(self) -> None:
        if self._writing.acquire(blocking=False):
            self._moved_at = time.monotonic()
            BLOCKING.submit(self._serve)

    def _serve(self) -> None:
        while batch := self._batch():
            self._keep_all(batch)
        self._writing.release()
        if not self._orders.empty():  # one came after the last batch and before the release
            self._begin()

    def _keep_all(self, batch: list[Order]) -> None:
        try:
            self._keep([order for order in batch if not order.reply.is_cancelled])
        except BaseException as error:
            log.exception("the spool's thread goes on")
            for order in batch:
                _fail(order, NotSpooled(f"the local spool failed: {type(error).__name__}"))
        self._moved_at = time.monotonic()

    def _batch(self) -> list[Order]:
        """Return the next orders, an empty list if there are none."""
        batch: list[Order] = []
        size = 0
        while len(batch) < _MAX_AT_ONCE and size < _BYTES_AT_ONCE:
            try:
                batch.append(self._orders.get_nowait())
            except Empty:
                break
            size += batch[-1].request.size
        return batch

    def _keep(self, batch: list[Order]) -> None:
        results = self._partition.keep_all(batch, on_progress=self._note)
        stored: list[tuple[Order, Spooled]] = []
        for order, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                _fail(order, result)
            else:
                order.reply.set_result(result)
                stored.append((order, result))
        if stored:
            BLOCKING.submit(partial(_call_on_kept, stored))

    def _note(self) -> None:
        self._moved_at = time.monotonic()


_writers: Final[weakref.WeakValueDictionary[Hashable, SpoolWriter]] = weakref.WeakValueDictionary()


def writer_for(partition: Partition) -> SpoolWriter:
    """Return the writer of this process for the folder of a partition."""
    return _writers.setdefault(partition.identity, SpoolWriter(partition))


def _call_on_kept(stored: list[tuple[Order, Spooled]]) -> None:
    """Call `on_kept` of each order, in another thread than the writer's, because it may have to wait."""
    for order, entry in stored:
        try:
            order.on_kept(entry, order.locked)
        except Exception:
            log.exception("the spooled capture %s is not uploaded for now", entry.id)


def _fail(order: Order, error: BaseException) -> None:
    if not order.reply.done():
        order.reply.set_exception(error)
