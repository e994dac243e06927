"""One thread that keeps outputs in a spool, several at a time, so that they share waits for the disk."""

from __future__ import annotations

import logging
import threading
import time
from _thread import start_new_thread  # `Thread.start` waits, for what an interrupted thread may hold
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from overspill.execution import forks
from overspill.spools.own_directory import NotSpooled

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.execution.waiting import Reply
    from overspill.spools.folder import Spooled
    from overspill.spools.order import Order
    from overspill.spools.spool import Shelf

_MOST_AT_ONCE: Final = 32
_BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""Bytes of one batch, at most: whoever is in it waits for all of it."""
_IDLE: Final = 1.0
"""Seconds without an order after which the thread ends."""

log: Final = logging.getLogger("overspill")


class SpoolWriter:
    """Safe to use from any thread, and from a signal handler. A forked child has a thread of its own."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, begin with no orders: the parent's thread writes its own."""
        self._lock = threading.RLock()
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._is_running = False
        self._moved_at = time.monotonic()

    def submit(self, order: Order) -> Reply[Spooled]:
        """Return what becomes the entry, or raises what `Shelf.keep` does."""
        self._orders.put(order)
        with self._lock:
            if not self._is_running:
                self._moved_at = time.monotonic()
                self._is_running = _begins(self._serve)
            is_running = self._is_running
        if not is_running:
            self._serve_here()
        return order.done

    def idle_seconds(self) -> float:
        """Return for how long the disk has taken nothing."""
        return time.monotonic() - self._moved_at

    def _serve(self) -> None:
        while (batch := self._batch()) is not None:
            self._keep_all(batch)

    def _serve_here(self) -> None:
        """Keep what is ordered in the caller's thread: no other can be started."""
        with suppress(Empty):
            while True:
                self._keep_all([self._orders.get_nowait()])

    def _keep_all(self, batch: list[Order]) -> None:
        try:
            self._keep([order for order in batch if not order.done.is_cancelled])
        except BaseException as error:
            log.exception("the spool's thread goes on")
            for order in batch:
                _fail(order, NotSpooled(f"the local spool failed: {type(error).__name__}"))
        self._moved_at = time.monotonic()

    def _batch(self) -> list[Order] | None:
        """Return the next orders; None, and the thread ends, if there have been none for some time."""
        try:
            batch = [self._orders.get(timeout=_IDLE)]
        except Empty:
            return self._none()
        size = batch[0].request.size
        while len(batch) < _MOST_AT_ONCE and size < _BYTES_AT_ONCE:
            try:
                batch.append(self._orders.get_nowait())
            except Empty:
                break
            size += batch[-1].request.size
        return batch

    def _none(self) -> list[Order] | None:
        """End the thread if there is no order; the lock may be held by a thread that was interrupted."""
        if not self._lock.acquire(blocking=False):
            return []
        try:
            if not self._orders.empty():
                return []
            self._is_running = False
            return None
        finally:
            self._lock.release()

    def _keep(self, batch: list[Order]) -> None:
        results = self._shelf.keep_all(batch, on_progress=self._note)
        kept: list[tuple[Order, Spooled]] = []
        for order, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                _fail(order, result)
            else:
                order.done.set_result(result)
                kept.append((order, result))
        if kept and not _begins(_tell, kept):
            _tell(kept)

    def _note(self) -> None:
        self._moved_at = time.monotonic()


def _begins(work: Callable[..., None], *args: object) -> bool:
    """Begin `work` in a thread; False where the process has threads enough."""
    try:
        start_new_thread(work, args)
    except RuntimeError:
        return False
    return True


def _tell(kept: list[tuple[Order, Spooled]]) -> None:
    """Say what was kept, in a thread of its own: whoever is told may have to wait for others."""
    for order, entry in kept:
        try:
            order.on_kept(entry)
        except Exception:
            log.exception("the spooled capture %s is not uploaded for now", entry.id)


def _fail(order: Order, error: BaseException) -> None:
    if not order.done.done():
        order.done.set_exception(error)
