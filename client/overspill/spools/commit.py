"""Puts several captures into a folder together, so that they share each wait for the disk."""

from __future__ import annotations

import os
import queue
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, Final

import msgspec

from overspill.errors.client_errors import NotSpooled
from overspill.spools.folder import ENTRY
from overspill.spools.order import take
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.spools.draft import Draft
    from overspill.spools.entries import Spooled
    from overspill.spools.folder import Folder
    from overspill.spools.order import Addition, Order
    from overspill.spools.room import Room

_THREADS: Final = 8
"""The most files that are synchronized at the same time: the system writes these together."""


def commit(
    folder: Folder,
    room: Room,
    additions: Sequence[Addition],
    until: float,
    on_progress: Callable[[], None],
) -> None:
    """Write all `additions` that can be kept to the disk itself. Set `failure` of the others. Raises nothing.

    `until` is when to stop waiting for other processes, on the monotonic clock. `on_progress` is called
    whenever the disk has taken bytes.
    """
    try:
        room.admit(additions, until)
        for addition in additions:
            _attempt(addition, addition.write)
            on_progress()
        _sync(additions)
        on_progress()
        _publish(room, additions, until)
        _sync_names(folder, room, additions)
    finally:
        for addition in additions:
            _finish(addition, room)


def replace(folder: Folder, room: Room, entry: Spooled, order: Order | None = None) -> bool:
    """Replace the entry of a capture; return False if the capture went meanwhile.

    Raises `NotSpooled` and `OSError`.
    """
    data = msgspec.json.encode(entry)
    draft = room.begin(len(data), partial(folder.begin, len(data)))
    with _discarded(draft, room):
        draft.fill(ENTRY, data, dated=entry.expires.timestamp())
        with room.locked() as ledger:
            is_here = folder.has(entry.id)
            if is_here:
                take(order)
                ledger.rename(draft.size)
            freed = folder.publish(draft, entry.id) if is_here else draft.discard()
            ledger.discharge(freed)
    return is_here


@contextmanager
def _discarded(draft: Draft, room: Room) -> Iterator[Draft]:
    """Remove the draft if the block fails. If the lock is busy, the next tidying removes it."""
    with draft:
        try:
            yield draft
        except BaseException:
            with suppress(NotSpooled, OSError), room.locked() as ledger:
                ledger.discharge(draft.discard())
            raise


def _finish(addition: Addition, room: Room) -> None:
    """Unlock the draft. If the addition failed, remove it, or leave that to the next tidying."""
    draft, order = addition.draft, addition.order
    addition.draft = None
    if draft is None:
        return
    with draft:
        if addition.failure is not None:
            with suppress(NotSpooled, OSError), room.locked() as ledger:
                ledger.discharge(draft.discard())
        elif order is not None and order.is_uploading:
            order.locked = draft.hand_over(addition.folder.suffix)


def too_large(size: int, bound: int) -> NotSpooled:
    """Return the error for a capture of `size` bytes that is larger than the spool's bound, in bytes."""
    own_size, max_size = quantities.readable_size(size), quantities.readable_size(bound)
    return NotSpooled(f"it is larger than the whole local spool may be ({own_size}, {max_size})")


def _attempt(addition: Addition, step: Callable[[], None]) -> None:
    """Do one step of an addition that has not failed yet."""
    if addition.failure is not None:
        return
    try:
        step()
    except (NotSpooled, OSError) as error:
        addition.fail(error)


def _publish(room: Room, additions: Sequence[Addition], until: float) -> None:
    """Publish all drafts that were written."""
    written = [addition for addition in additions if addition.failure is None]
    if not written:
        return
    try:
        with room.locked(until - time.monotonic()) as ledger:
            for addition in written:
                _attempt(addition, partial(addition.publish, ledger))
    except (NotSpooled, OSError) as error:
        for addition in written:
            addition.fail(error)


def _sync(additions: Sequence[Addition]) -> None:
    """Write the bytes of all drafts to the disk itself."""
    waiting: queue.SimpleQueue[tuple[Addition, int]] = queue.SimpleQueue()
    for addition in additions:
        if addition.failure is None and addition.draft is not None:
            for descriptor in addition.draft.descriptors:
                waiting.put((addition, descriptor))
    helpers = [
        threading.Thread(target=_sync_each, args=[waiting], name="overspill-sync", daemon=True)
        for _ in range(min(_THREADS, waiting.qsize()) - 1)
    ]
    started = []
    with suppress(RuntimeError):  # the process has threads enough: fewer do it all
        for helper in helpers:
            helper.start()
            started.append(helper)
    _sync_each(waiting)
    for helper in started:
        helper.join()


def _sync_each(waiting: queue.SimpleQueue[tuple[Addition, int]]) -> None:
    while True:
        try:
            addition, descriptor = waiting.get_nowait()
        except Empty:
            return
        _attempt(addition, partial(os.fsync, descriptor))


def _sync_names(folder: Folder, room: Room, additions: Sequence[Addition]) -> None:
    """Write the names of all published captures to the disk itself. If that fails, remove them again."""
    published = [addition for addition in additions if addition.failure is None]
    if not published:
        return
    try:
        folder.sync()
    except OSError as error:
        for addition in published:
            addition.fail(error)
            with suppress(NotSpooled, OSError):
                room.remove(folder, addition.entry.id)
