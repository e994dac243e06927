"""Captures that wait on this machine's disk for the service: bounded, safe from crashes, shared by processes.

    spool/                       0700, its owner's alone
      .lock                      held by whoever changes anything
      <fingerprint>/             the captures of one service and key, a `Folder`

What is kept for one service and key is never read or uploaded by a client of another, so that tenants do
not mix. The oldest go when all together would be larger than the bound, and that is logged and remembered.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from overspill import calls, measure, wire
from overspill.body import Filed
from overspill.spools import own_directory
from overspill.spools.folder import Dropped, Folder, Spooled
from overspill.spools.own_directory import PATIENCE, NotSpooled, is_directory, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from overspill.spill import Spill
    from overspill.spools.folder import Held

MAX_BYTES: Final = 1024**3
"""What the spool may take of the disk, unless `OVERSPILL_SPOOL_BYTES` says otherwise."""
OFF: Final = "off"
_TIDY: Final = 600.0
"""Seconds between two looks for what has expired and what dead processes left."""
_SHELF: Final = re.compile(r"[0-9a-f]{32}")
_FULL: Final = "the spool was full and it was the oldest"
_EXPIRED: Final = "it had expired"

log = logging.getLogger("overspill")


def fingerprint(url: str, key: str) -> str:
    """What a service and a key are known by on the disk, which does not give the key away."""
    return hashlib.sha256(f"{url}\0{key}".encode()).hexdigest()[:32]


class Spool:
    """The spool in `directory`: else `OVERSPILL_SPOOL`, else `overspill/spool` among the user's states.

    `max_bytes` bounds what it takes of the disk (else `OVERSPILL_SPOOL_BYTES`, else 1 GiB). Nothing is
    touched before the first use. `clock` gives seconds since the epoch. Raises `ValueError` for a bound
    that is no number. Safe to use from any number of threads and processes.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(os.path.abspath(_directory() if directory is None else directory))  # noqa: PTH100
        self.max_bytes = _max_bytes() if max_bytes is None else max_bytes
        self.clock = clock
        self._tidied = -_TIDY

    def __repr__(self) -> str:
        return f"Spool({str(self.path)!r})"

    @classmethod
    def default(cls) -> Spool | None:
        """That of the environment; None where it says `off`."""
        if os.environ.get("OVERSPILL_SPOOL", "").strip().lower() == OFF:
            return None
        return cls()

    def shelf(self, url: str, key: str) -> Shelf:
        """The part that belongs to one service and key."""
        return Shelf(self, Folder(self.path / fingerprint(url, key)), url)

    def shelves(self) -> list[Shelf]:
        """Those of all services and keys. Raises `NotSpooled` where the directory is not safe to use."""
        if not self.exists():
            return []
        names = sorted(name for name in os.listdir(self.path) if _SHELF.fullmatch(name))  # noqa: PTH208
        return [Shelf(self, Folder(self.path / name)) for name in names]

    def used(self) -> int:
        """Bytes that it takes of the disk. Raises `NotSpooled` and `OSError`."""
        return sum(shelf.folder.used() for shelf in self._existing())

    def exists(self) -> bool:
        """Whether there is anything. Raises `NotSpooled` where the directory is not safe to use."""
        return own_directory.exists(self.path)

    def make(self) -> None:
        """Create the directory where it is not there. Raises `NotSpooled` and `OSError`."""
        if not self.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
            self.exists()

    def locked(self, patience: float = PATIENCE) -> AbstractContextManager[None]:
        """Alone among all threads and processes. Raises `NotSpooled` where others take too long."""
        return own_directory.locked(self.path, patience)

    def make_room(self, size: int) -> None:
        """Drop what has expired, then the oldest, until `size` bytes more fit; for whoever has it locked.

        Raises `NotSpooled` where dropping all would not be enough, and `OSError`.
        """
        over = self.used() + size - self.max_bytes
        if over <= 0:
            return
        over -= sum(shelf.forget_expired() for shelf in self._existing())
        oldest = self._oldest()
        if over > sum(held.size for held, _ in oldest):
            raise NotSpooled("the local spool is full of outputs that are still being written")
        for held, shelf in oldest:
            if over <= 0:
                return
            shelf.forget([held.id], _FULL)
            over -= held.size
            size_in_words = measure.readable(held.size)
            log.warning("the local spool is full: dropped %s (%s), not uploaded yet", held.id, size_in_words)

    def _oldest(self) -> list[tuple[Held, Shelf]]:
        """All captures, oldest first."""
        found = [(held, shelf) for shelf in self._existing() for held in shelf.folder.held()]
        return sorted(found, key=itemgetter(0))

    def _existing(self) -> list[Shelf]:
        return [shelf for shelf in self.shelves() if shelf.exists()]

    def tidy(self) -> None:
        """Remove what has expired and what dead processes left; for whoever has it locked."""
        self._tidied = time.monotonic()
        for shelf in self._existing():
            shelf.forget_expired()
            shelf.folder.tidy()

    def tidy_now_and_then(self) -> None:
        """`tidy`, unless that was not long ago."""
        if time.monotonic() - self._tidied > _TIDY:
            self.tidy()


class Shelf:
    """The captures of one service and key, oldest first. `url` is the service's, empty if it is not known.

    `shown` is the folder as its agent names it, in a workspace, where files may have been changed.
    """

    def __init__(self, spool: Spool, folder: Folder, url: str = "", *, shown: str = "") -> None:
        self.spool, self.folder, self.url, self._shown = spool, folder, url, shown

    def exists(self) -> bool:
        """Whether anything was ever kept here. Raises `NotSpooled` where the spool is not safe to use."""
        return self.spool.exists() and is_directory(self.folder.path)

    def keep(self, spill: Spill, reason: str, *, refused: str = "") -> Spooled:
        """Keep a spill that the service does not have, for `reason`; it is on the disk then.

        `refused` says why the service will never have it.

        Raises `NotSpooled`, which says why not.
        """
        size, bound = spill.size, self.spool.max_bytes
        if size > bound:
            mine, most = measure.readable(size), measure.readable(bound)
            raise NotSpooled(f"it is larger than the whole local spool may be ({mine}, {most})")
        try:
            self._make()
            now = datetime.fromtimestamp(self.spool.clock(), UTC)
            path = f"{self._shown}/{self.folder.name(spill.id)}" if self._shown else ""
            entry = _spooled(spill, now, url=self.url, reason=reason, refused=refused, path=path)
            self._keep(entry, spill)
        except OSError as error:
            raise NotSpooled(told(error)) from error
        return entry

    def _make(self) -> None:
        self.spool.make()
        with suppress(FileExistsError):
            self.folder.path.mkdir(mode=0o700)

    def _keep(self, entry: Spooled, spill: Spill) -> None:
        patience = max(PATIENCE, spill.deadline)
        with self.spool.locked(patience):
            self.spool.tidy_now_and_then()
            if not self._shown and self.folder.size(entry.id) == entry.size:
                self.folder.amend(entry)
                return
            self.spool.make_room(entry.size)
            part = self.folder.reserve(entry.size)
        try:
            self.folder.fill(part, _content(spill))
            with self.spool.locked(patience):
                self.folder.commit(part, entry)
        except BaseException:
            with suppress(OSError):
                self.folder.discard(part)
            raise

    def entries(self) -> list[Spooled]:
        """Those that have not expired. Raises `NotSpooled` and `OSError`."""
        if not self.exists():
            return []
        now = datetime.fromtimestamp(self.spool.clock(), UTC)
        return [entry for entry in self.folder.entries() if entry.expires > now]

    def find(self, ref: str, session: str | None = None) -> Spooled | None:
        """A capture by its id, or the newest of a `call:` reference, of any session where that is empty.

        Raises `InvalidId`, `NotSpooled` and `OSError`.
        """
        call_id = calls.id_of(ref)
        if not self.exists():
            return None
        if call_id is not None:
            matches = [entry for entry in self.entries() if _is_of(entry, call_id, session)]
            return matches[-1] if matches else None
        entry = self.folder.entry(ref) if wire.CAPTURE_ID.fullmatch(ref) else None
        return entry if entry and entry.expires.timestamp() > self.spool.clock() else None

    def dropped(self, ref: str, session: str | None = None) -> Dropped | None:
        """What is remembered of one that had to go. Raises `InvalidId`, `NotSpooled` and `OSError`."""
        call_id = calls.id_of(ref)
        found = self.folder.dropped() if self.exists() else []
        if call_id is None:
            matches = [each for each in found if each.id == ref]
        else:
            matches = [each for each in found if _is_of(each, call_id, session)]
        return matches[-1] if matches else None

    def open(self, entry: Spooled) -> IO[bytes]:
        """Raises `OSError`."""
        return self.folder.open(entry.id)

    def drop(self, ids: list[str], reason: str) -> None:
        """Remove captures and remember why. Raises `NotSpooled` and `OSError`."""
        with self.spool.locked():
            self.forget(ids, reason)

    def uploaded(self, entry: Spooled) -> None:
        """Remove what the service has now. Raises `NotSpooled` and `OSError`."""
        with self.spool.locked():
            self.folder.remove(entry.id)

    def amend(self, entry: Spooled) -> None:
        """Replace what is known of a capture, if it is still here. Raises `NotSpooled` and `OSError`."""
        with self.spool.locked():
            if self.folder.entry(entry.id) is not None:
                self.folder.amend(entry)

    def forget(self, ids: list[str], reason: str) -> None:
        """As `drop`, for whoever has the spool locked."""
        now = datetime.fromtimestamp(self.spool.clock(), UTC)
        found = [entry for id in ids if (entry := self.folder.entry(id)) is not None]  # noqa: A001
        self.folder.remember([_dropped(entry, now, reason) for entry in found])
        for id in ids:  # noqa: A001
            self.folder.remove(id)

    def forget_expired(self) -> int:
        """How many bytes had expired, and are gone; for whoever has the spool locked."""
        now = self.spool.clock()
        dated = [held for held in self.folder.held() if held.expires <= now]
        expired = [held for held in dated if self._has_expired(held, now)]
        if expired:
            self.forget([held.id for held in expired], _EXPIRED)
        return sum(held.size for held in expired)

    def _has_expired(self, held: Held, now: float) -> bool:
        entry = self.folder.entry(held.id)
        return entry is not None and entry.expires.timestamp() <= now


def _content(spill: Spill) -> bytes | Filed:
    return spill.body if isinstance(spill.body, Filed) else spill.data


def _spooled(spill: Spill, now: datetime, *, url: str, reason: str, refused: str, path: str) -> Spooled:
    origin, ttl = spill.origin, spill.policy.ttl
    return Spooled(
        id=spill.id,
        size=spill.size,
        lines=spill.lines,
        sha256=spill.sha256.hex(),
        session=wire.fit(origin.session),
        call_id=wire.fit(origin.call_id),
        tool=wire.fit(origin.tool),
        status=wire.fit(origin.status),
        content_type=spill.content.content_type,
        ttl=ttl,
        created=now,
        expires=now + timedelta(seconds=wire.DEFAULT_TTL if ttl is None else ttl),
        url=url,
        reason=reason,
        refused=refused,
        path=path,
    )


def _dropped(entry: Spooled, now: datetime, reason: str) -> Dropped:
    return Dropped(
        id=entry.id,
        call_id=entry.call_id,
        session=entry.session,
        size=entry.size,
        dropped=now,
        reason=reason,
    )


def _is_of(entry: Spooled | Dropped, call_id: str, session: str | None) -> bool:
    return entry.call_id == wire.fit(call_id) and (not session or entry.session == wire.fit(session))


def _directory() -> Path:
    given = os.environ.get("OVERSPILL_SPOOL", "").strip()
    if given:
        return Path(os.path.expanduser(given))  # noqa: PTH111
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # noqa: PTH117
        state = os.path.expanduser("~/.local/state")  # noqa: PTH111  (raises nothing where there is no home)
    if state.startswith("~"):
        return Path(tempfile.gettempdir()) / f"overspill-{os.getuid()}" / "spool"
    return Path(state) / "overspill" / "spool"


def _max_bytes() -> int:
    given = os.environ.get("OVERSPILL_SPOOL_BYTES", "").strip()
    if not given:
        return MAX_BYTES
    if not (given.isascii() and given.isdigit()):
        raise ValueError(f"OVERSPILL_SPOOL_BYTES must be a number of bytes; it is {given!r}")
    return int(given)
