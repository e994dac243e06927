"""Keeps a spool within its bound, for any number of processes, without looking at every file each time.

    .lock      the `Ledger`: how many bytes are kept; locked for microseconds a capture, to begin, publish or
               remove files
    .tidy      locked by the one process that looks at all files or drops captures

All files are looked at if the total is not known, every few seconds while the spool is full, and every ten
minutes.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from overspill.errors.client_errors import NotSpooled
from overspill.spools import own_directory
from overspill.spools.entries import Dropped, Spooled
from overspill.spools.ledger import Account, Ledger
from overspill.spools.own_directory import LOCK_TIMEOUT_SECONDS, Busy
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from overspill.spools.draft import Draft
    from overspill.spools.folder import Folder, StoredFile
    from overspill.spools.order import Addition

T = TypeVar("T")

TIDY_SECONDS: Final = 600.0
"""Seconds between two searches for expired captures and for files that dead processes left."""
_COUNT_SECONDS: Final = 5.0
"""Seconds for which a spool that was found full counts as full."""
_EXPIRED: Final = "it had expired"


class Room:
    """The room of the spool in `path`, which may keep `max_bytes`. `folders` returns its folders.

    `clock` gives seconds since the epoch. All methods raise `NotSpooled` if others keep the spool busy,
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
    def locked(
        self, lock_timeout: float = LOCK_TIMEOUT_SECONDS, *, may_create: bool = True
    ) -> Iterator[Ledger]:
        """Lock the spool against all threads and processes. Do nothing slow in the block."""
        with own_directory.locked(self._path / ".lock", lock_timeout, may_create=may_create) as descriptor:
            yield Ledger(descriptor)

    def tidying(self, lock_timeout: float = LOCK_TIMEOUT_SECONDS) -> AbstractContextManager[int]:
        """Lock out every other process that counts files or drops captures."""
        return own_directory.locked(self._path / ".tidy", lock_timeout)

    def admit(self, additions: Sequence[Addition], until: float) -> None:
        """Begin the additions for which there is room; the others fail. Raises nothing.

        Notices promised what is kept, so only expired captures are removed to make room. `until` is when to
        give up waiting for others, on the monotonic clock.
        """
        waiting = list(additions)
        try:
            while waiting:
                with self.locked(until - time.monotonic()) as ledger:
                    waiting = [addition for addition in waiting if not self._try_to_begin(ledger, addition)]
                    account = ledger.read()
                if waiting and 0 <= self._clock() - account.counted < _COUNT_SECONDS:
                    max_size = quantities.readable_size(self._max_bytes)
                    raise NotSpooled(f"the local spool is full: it may keep {max_size}")  # noqa: TRY301  (for all)
                if waiting:
                    self._count_once(account, until)
        except (NotSpooled, OSError) as error:
            for addition in waiting:
                addition.fail(error)

    def _try_to_begin(self, ledger: Ledger, addition: Addition) -> bool:
        """Begin an addition if there is room. Return False if there is none."""
        if ledger.read().total + addition.size > self._max_bytes:
            return False
        try:
            _charge_and_begin(ledger, addition.size, addition.begin)
        except (NotSpooled, OSError) as error:
            addition.fail(error)
        return True

    def begin(self, size: int, begin: Callable[[], Draft]) -> Draft:
        """Begin a draft of `size` bytes without asking for room: an entry is small enough for that."""
        with self.locked() as ledger:
            return _charge_and_begin(ledger, size, begin)

    def _count_once(self, before: Account, until: float) -> None:
        """Count all files and remove what has expired, unless another process has just done so."""
        with self.tidying(until - time.monotonic()):
            with self.locked(until - time.monotonic()) as ledger:
                is_new = ledger.read().counted != before.counted
            if not is_new:
                self._survey()

    def remove(self, folder: Folder, id: str) -> None:  # noqa: A002  (the field's own name)
        """Remove a capture, if it is there. Nothing remembers it."""
        with self.locked() as ledger:
            ledger.discharge(folder.remove(id))

    def forget(self, folder: Folder, ids: Iterable[str], reason: str) -> None:
        """Remove captures and remember why. Call it within `tidying`."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        ids = list(ids)
        entries = [entry for id in ids if (entry := folder.entry(id)) is not None]  # noqa: A001
        if entries:
            folder.remember([_dropped(entry, now, reason) for entry in entries])
        for id in ids:  # noqa: A001
            self.remove(folder, id)

    def tidy(self, lock_timeout: float = LOCK_TIMEOUT_SECONDS) -> None:
        """Count all files, and remove what has expired and what dead processes left."""
        with self.tidying(lock_timeout):
            self._survey()

    def tidy_if_due(self) -> None:
        """Tidy, unless a process did so in the last ten minutes or does so now, or there is no spool."""
        try:
            with self.locked(may_create=False) as ledger:
                since = self._clock() - ledger.read().counted
        except FileNotFoundError:
            return
        if not 0 <= since < TIDY_SECONDS:
            with suppress(Busy):
                self.tidy(lock_timeout=0.0)

    def _survey(self) -> None:
        """Look at all files, correct the total, remove what has expired and what dead processes left.

        Call it within `tidying`.
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
        now = self._clock()
        for folder, stock in stocks:
            expired = [each.id for each in stock.stored_files if _has_expired(each, folder, now)]
            self.forget(folder, expired, _EXPIRED)


def _charge_and_begin(ledger: Ledger, size: int, begin: Callable[[], T]) -> T:
    """Count the bytes first: a process that dies in between leaves a total that is too high, not too low."""
    ledger.charge(size)
    try:
        return begin()
    except BaseException:
        ledger.discharge(size)
        raise


def _has_expired(stored_file: StoredFile, folder: Folder, now: float) -> bool:
    """Return whether the entry says that it has expired. The date of a copied file may be wrong."""
    entry = folder.entry(stored_file.id) if stored_file.expires <= now else None
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
