"""The captures of one service and key that wait on this machine's disk: kept, found, dropped."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Final, Protocol

from msgspec import structs

from overspill import wire
from overspill.errors.client_errors import NotSpooled
from overspill.spools.commit import commit, replace, too_large
from overspill.spools.entries import Digested, Dropped, Spooled, is_of, new_entry, output_entry
from overspill.spools.order import Addition
from overspill.spools.own_directory import LOCK_TIMEOUT_SECONDS, LockedFile, is_directory
from overspill.text.body import FileBody
from overspill.text.encoding import bytes_of
from overspill.transfer.request import call_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from pathlib import Path

    from overspill.live.ports import Description
    from overspill.spools.folder import Folder
    from overspill.spools.order import Order
    from overspill.spools.room import Room
    from overspill.spools.store_request import StoreRequest
    from overspill.text.body import Body

LONG_LOCK_TIMEOUT_SECONDS: Final = 20.0
"""Seconds that outputs of agents wait for others, which keep the spool busy."""


def _nothing() -> None:
    """Ignore progress: nobody waits for it."""


class PartitionedSpool(Protocol):
    """The spool that a partition is part of. `clock` gives seconds since the epoch."""

    path: Path
    max_bytes: int
    clock: Callable[[], float]
    room: Room

    def exists(self) -> bool:
        """Return whether the directory is there. Raises `NotSpooled` if it is not safe to use."""

    def make(self) -> None:
        """Create the directory if it is not there. Raises `NotSpooled` and `OSError`."""

    def partitions(self) -> list[Partition]:
        """Return the parts of all services and keys. Raises `NotSpooled` if the directory is not safe."""


class Partition:
    """The captures of one service and key, oldest first. `url` is the service's, empty if it is not known.

    `agent_path` is the folder's path for the agent, if the spool is a workspace. There the agent may have
    changed the files.
    """

    def __init__(
        self, spool: PartitionedSpool, folder: Folder, url: str = "", *, agent_path: str = ""
    ) -> None:
        self.spool = spool
        self.folder = folder
        self.url = url
        self._agent_path = agent_path

    @property
    def identity(self) -> Hashable:
        """A value that is equal for partitions that can share one writer."""
        return (
            type(self),
            self.folder.path,
            self.url,
            self._agent_path,
            self.spool.max_bytes,
            self.spool.clock,
        )

    def exists(self) -> bool:
        """Return whether anything was ever kept here. Raises `NotSpooled` if the spool is not safe."""
        return self.spool.exists() and is_directory(self.folder.path)

    def keep(self, request: StoreRequest, reason: str) -> Spooled:
        """Write an output to the disk, and return its entry once it is durable.

        `reason` says why the service does not have it. Raises `NotSpooled` with the reason; then nothing of
        the output is on the disk.
        """
        addition = self._addition(request, reason)
        self._add([addition], max(LOCK_TIMEOUT_SECONDS, request.deadline))
        return addition.result()

    def keep_all(
        self, orders: Sequence[Order], on_progress: Callable[[], None]
    ) -> list[Spooled | NotSpooled]:
        """Do the same as `keep`, for several outputs at once: they share waits for the disk. Return errors.

        Each takes its order before anything of it can be found on the disk. `on_progress` is called
        whenever the disk has taken something.
        """
        additions = [self._addition(order.request, order.reason, order.refused, order) for order in orders]
        self._add(additions, LONG_LOCK_TIMEOUT_SECONDS, on_progress)
        return [addition.failure or addition.entry for addition in additions]

    def keep_body(
        self,
        description: Description,
        body: Body,
        reason: str,
        *,
        producer: str = "",
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
    ) -> Spooled:
        """Do the same as `keep`, for a file or a stream. One without an id gets that of its content.

        `producer` is that of the entry. Waits at most `lock_timeout` seconds for others that keep the spool
        busy. Raises `OSError` too.
        """
        digested = Digested.of(body)
        handle = description.id or wire.capture_id(description.session, description.call_id, digested.sha256)
        described = structs.replace(description, id=handle)
        entry = new_entry(described, digested, self._now(), url=self.url, reason=reason, producer=producer)
        addition = Addition(self.folder, entry, body if isinstance(body, FileBody) else bytes_of(body))
        self._add([addition], lock_timeout)
        return addition.result()

    def _addition(
        self, request: StoreRequest, reason: str, refused: str = "", order: Order | None = None
    ) -> Addition:
        path = self._path_for_agent(request) if self._agent_path else ""
        entry = output_entry(request, self._now(), url=self.url, reason=reason)
        entry = structs.replace(entry, refused=refused, path=path)
        return Addition(self.folder, entry, request.body, order)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.spool.clock(), UTC)

    def _path_for_agent(self, request: StoreRequest) -> str:
        return f"{self._agent_path}/{self.folder.name(request.id)}"

    def _add(
        self, additions: Sequence[Addition], lock_timeout: float, on_progress: Callable[[], None] = _nothing
    ) -> None:
        """Keep all that can be kept; set `failure` of the others. Raises nothing."""
        try:
            self.make()
            new = [addition for addition in additions if not self._is_here(addition)]
        except (NotSpooled, OSError) as error:
            for addition in additions:
                addition.fail(addition.failure or error)
            return
        commit(self.folder, self.spool.room, new, time.monotonic() + lock_timeout, on_progress)

    def _is_here(self, addition: Addition) -> bool:
        """Return whether nothing is left to do, because the output is here already or cannot be kept."""
        if addition.size > self.spool.max_bytes:
            addition.failure = too_large(addition.size, self.spool.max_bytes)
            return True
        try:
            room, entry = self.spool.room, addition.entry
            return self._is_kept(entry) and replace(self.folder, room, entry, addition.order)
        except NotSpooled as error:
            addition.fail(error)
            return True

    def make(self) -> None:
        """Create the folder if it is not there. Raises `NotSpooled` and `OSError`."""
        self.spool.make()
        with suppress(FileExistsError):
            self.folder.path.mkdir(mode=0o700)

    def _is_kept(self, entry: Spooled) -> bool:
        """Return whether the content is here already. Never in a workspace: the agent may have changed it."""
        return not self._agent_path and self.folder.size(entry.id) == entry.size

    def is_empty(self) -> bool:
        """Return whether nothing waits here. Raises `NotSpooled` and `OSError`."""
        return not self.exists() or self.folder.is_empty()

    def entries(self) -> list[Spooled]:
        """Return the entries that have not expired, oldest first. Raises `NotSpooled` and `OSError`."""
        if not self.exists():
            return []
        return [entry for entry in self.folder.entries() if not self._has_expired(entry)]

    def find(self, ref: str, session: str | None = None) -> Spooled | None:
        """Return the capture with this id, or the newest of a `call:` reference, or None.

        Without `session` a `call:` reference is looked up in all sessions. Raises `InvalidId` if its id is
        empty, `NotSpooled` and `OSError`.
        """
        call_id = call_id_of(ref)
        if not self.exists():
            return None
        if call_id is not None:
            matches = [entry for entry in self.entries() if is_of(entry, call_id, session)]
            return matches[-1] if matches else None
        entry = self.folder.entry(ref) if wire.CAPTURE_ID.fullmatch(ref) else None
        return entry if entry and not self._has_expired(entry) else None

    def _has_expired(self, entry: Spooled) -> bool:
        return entry.expires.timestamp() <= self.spool.clock()

    def dropped(self, ref: str, session: str | None = None) -> Dropped | None:
        """Return what is remembered of a capture that was removed without being uploaded, or None.

        Raises `InvalidId`, `NotSpooled` and `OSError`.
        """
        call_id = call_id_of(ref)
        found = self.folder.dropped() if self.exists() else []
        if call_id is None:
            matches = [each for each in found if each.id == ref]
        else:
            matches = [each for each in found if is_of(each, call_id, session)]
        return matches[-1] if matches else None

    def open(self, entry: Spooled) -> IO[bytes]:
        """Open the content of a capture. Raises `OSError`."""
        return self.folder.open(entry.id)

    def claim_upload(self, entry: Spooled) -> LockedFile | None:
        """Lock a capture, so that no flush uploads it until the file is closed. Raises nothing.

        Returns None if a flush uploads it already.
        """
        try:
            return LockedFile.of(self.open(entry))
        except OSError:
            return None

    def amend(self, entry: Spooled) -> None:
        """Replace the entry of a capture, if it is still here. Raises `NotSpooled` and `OSError`."""
        replace(self.folder, self.spool.room, entry)

    def tidy_if_due(self) -> None:
        """Tidy the spool if it is due: see `Room.tidy_if_due`. Raises `NotSpooled` and `OSError`."""
        if self.exists():
            self.spool.room.tidy_if_due()

    def drop(self, ids: list[str], reason: str) -> None:
        """Remove captures and remember why. Raises `NotSpooled` and `OSError`."""
        with self.spool.room.tidying():
            self.spool.room.forget(self.folder, ids, reason)

    def uploaded(self, entry: Spooled) -> None:
        """Remove a capture that the service has now. Raises `NotSpooled` and `OSError`."""
        self.spool.room.remove(self.folder, entry.id)
