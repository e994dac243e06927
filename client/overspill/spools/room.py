"""The bound on what a spool keeps, held by any number of processes without looking at every file.

    .lock      the `Ledger`: how many bytes are kept; locked for microseconds, by whoever publishes or removes
    .tidy      locked by whoever looks at all files or drops captures: one process at a time
    .oldest    the captures that go first

All files are looked at only where the total is not known, where the listed captures are used up or the list
is older than five minutes while the spool is full, and every ten minutes.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill import measure
from overspill.spools import oldest, own_directory
from overspill.spools.folder import Dropped, Folder, Held, Spooled
from overspill.spools.ledger import Ledger
from overspill.spools.own_directory import PATIENCE, Busy, NotSpooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from overspill.spools.draft import Draft

Capture: TypeAlias = tuple[Held, Folder]

TIDY_EVERY: Final = 600.0
"""Seconds between two looks for what has expired and what dead processes left."""
_LISTED_FOR: Final = 300.0
"""Seconds for which a full spool goes by the last look at all files."""
_SLACK: Final = 128
"""A full spool drops this part of its bound more than it must, so that others find room."""
_PAUSE: Final = 0.02
_FULL: Final = "the spool was full and it was the oldest"
_EXPIRED: Final = "it had expired"

log = logging.getLogger("overspill")


class Room:
    """Of a spool in `path` that may keep `max_bytes`; `folders` gives those that exist.

    `clock` gives seconds since the epoch. All methods raise `NotSpooled` where others keep the spool busy,
    and `OSError`.
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        *,
        folders: Callable[[], Iterable[Folder]],
        clock: Callable[[], float],
    ) -> None:
        self._path, self._max_bytes, self._folders, self._clock = path, max_bytes, folders, clock

    @contextmanager
    def locked(self, patience: float = PATIENCE) -> Iterator[Ledger]:
        """Lock the spool among all threads and processes. Nothing slow may happen in the block."""
        with own_directory.locked(self._path / ".lock", patience) as descriptor:
            yield Ledger(descriptor)

    def tidying(self, patience: float = PATIENCE) -> AbstractContextManager[int]:
        """Be the one who counts files and drops captures."""
        return own_directory.locked(self._path / ".tidy", patience)

    # --- in ----------------------------------------------------------------------------------------

    def admit(self, size: int, begin: Callable[[], Draft], until: float) -> Draft:
        """Begin a draft of `size` bytes once there is room for them; drop the oldest where it needs that.

        `until` is when to give up, on the monotonic clock.
        """
        while True:
            with self.locked(until - time.monotonic()) as ledger:
                if ledger.read().total + size <= self._max_bytes:
                    return _begun(ledger, size, begin)
            with self.tidying(until - time.monotonic()):
                is_made = self._make_room(size)
            if not is_made and time.monotonic() > until:
                raise NotSpooled("the local spool is full of outputs that are still being written")
            if not is_made:
                time.sleep(_PAUSE)

    def begin(self, size: int, begin: Callable[[], Draft]) -> Draft:
        """As `admit`, for what is so small that the bound may be exceeded by it."""
        with self.locked() as ledger:
            return _begun(ledger, size, begin)

    def _make_room(self, size: int) -> bool:
        """Drop the oldest until `size` bytes fit; for whoever tidies.

        False, and nothing is dropped, where dropping all would not be enough.
        """
        if self._missing(size) <= 0:
            return True
        listed = self._listed(size)
        return self._drop_first(listed, size) or self._drop_first(self._surveyed(), size)

    def _drop_first(self, captures: list[Capture], size: int) -> bool:
        """Drop as many of the first as must go, if they are enough; return whether `size` bytes fit."""
        missing = self._missing(size)
        taken = _first(captures, missing + self._max_bytes // _SLACK)
        if sum(held.kept for held, _ in taken) >= missing > 0:
            oldest.cut(self._path, [(held, folder.path.name) for held, folder in taken])
            present = [(held, folder) for held, folder in taken if folder.changed(held.id) == held.changed]
            for held, _ in present:
                words = measure.readable(held.size)
                log.warning("the local spool is full: dropped %s (%s), not uploaded yet", held.id, words)
            self._forget(present, _FULL)
            missing = self._missing(size)
        return missing <= 0

    def _listed(self, size: int) -> list[Capture]:
        """Return the oldest of the last survey, enough for `size` bytes; none if that was long ago."""
        with self.locked() as ledger:
            since = self._clock() - ledger.read().counted
        if not 0 <= since < _LISTED_FOR:
            return []
        enough = self._missing(size) + self._max_bytes // _SLACK
        folders = {folder.path.name: folder for folder in self._folders()}
        return [(held, folders[name]) for held, name in oldest.load(self._path, enough) if name in folders]

    def _missing(self, size: int) -> int:
        """Return how many bytes there are too few for `size` more."""
        with self.locked() as ledger:
            return ledger.read().total + size - self._max_bytes

    # --- out ---------------------------------------------------------------------------------------

    def remove(self, folder: Folder, id: str) -> None:  # noqa: A002  (the field's own name)
        """Remove a capture, if it is there, and remember nothing of it."""
        with self.locked() as ledger:
            ledger.discharge(folder.remove(id))

    def forget(self, folder: Folder, ids: Iterable[str], reason: str) -> None:
        """Remove captures and remember why; for whoever tidies."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        ids = list(ids)
        entries = [entry for id in ids if (entry := folder.entry(id)) is not None]  # noqa: A001
        if entries:
            folder.remember([_dropped(entry, now, reason) for entry in entries])
        for id in ids:  # noqa: A001
            self.remove(folder, id)

    def _forget(self, captures: list[Capture], reason: str) -> None:
        by_folder: dict[Path, tuple[Folder, list[str]]] = {}
        for held, folder in captures:
            by_folder.setdefault(folder.path, (folder, []))[1].append(held.id)
        for folder, ids in by_folder.values():
            self.forget(folder, ids, reason)

    # --- tidying -----------------------------------------------------------------------------------

    def tidy(self, patience: float = PATIENCE) -> None:
        """Count all files, and remove what has expired and what dead processes left."""
        with self.tidying(patience):
            self._surveyed()

    def tidy_if_due(self) -> None:
        """`tidy`, unless a process did so not long ago or is doing so now."""
        with self.locked() as ledger:
            since = self._clock() - ledger.read().counted
        if not 0 <= since < TIDY_EVERY:
            with suppress(Busy):
                self.tidy(patience=0.0)

    def _surveyed(self) -> list[Capture]:
        """Look at all files, set the total right, remove what has expired and what dead processes left.

        Returns all captures, oldest first; for whoever tidies.
        """
        with self.locked() as ledger:
            before = ledger.read()
        stocks = [(folder, folder.stock()) for folder in self._folders()]
        with self.locked() as ledger:
            ledger.settle(before, sum(stock.size for _, stock in stocks), self._clock())
        for folder, stock in stocks:
            for name in stock.loose:
                with self.locked() as ledger:
                    ledger.discharge(folder.clear(name))
        found = sorted(((held, folder) for folder, stock in stocks for held in stock.held), key=itemgetter(0))
        left = self._without_expired(found)
        oldest.save(self._path, [(held, folder.path.name) for held, folder in left])
        return left

    def _without_expired(self, captures: list[Capture]) -> list[Capture]:
        """Drop what has expired; return the others."""
        now = self._clock()
        expired = [pair for pair in captures if pair[0].expires <= now and _has_expired(*pair, now)]
        self._forget(expired, _EXPIRED)
        gone = {(folder.path, held.id) for held, folder in expired}
        return [pair for pair in captures if (pair[1].path, pair[0].id) not in gone]


def _begun(ledger: Ledger, size: int, begin: Callable[[], Draft]) -> Draft:
    """Count the bytes first: a process that dies in between leaves a total that is too high, not too low."""
    ledger.charge(size)
    try:
        return begin()
    except BaseException:
        ledger.discharge(size)
        raise


def _first(captures: list[Capture], size: int) -> list[Capture]:
    """Return as many of the first as have `size` bytes, or all."""
    total = 0
    for number, (held, _) in enumerate(captures):
        if total >= size:
            return captures[:number]
        total += held.kept
    return captures


def _has_expired(held: Held, folder: Folder, now: float) -> bool:
    """Ask the entry: the date of a copied file may lie."""
    entry = folder.entry(held.id)
    return entry is not None and entry.expires.timestamp() <= now


def _dropped(entry: Spooled, now: datetime, reason: str) -> Dropped:
    return Dropped(
        id=entry.id,
        call_id=entry.call_id,
        session=entry.session,
        size=entry.size,
        dropped=now,
        reason=reason,
    )
