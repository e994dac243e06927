"""Stores an output in the first of its destinations that takes it, once the output has a slot.

All of this runs in the loop thread, for synchronous and asynchronous callers alike. The service has the
seconds that the policy's `wait` gives it; the spool has a deadline of its own. Nothing here raises: each
failure becomes a reason that the notice can state.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import weakref
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from overspill.delivery import slots, state_log
from overspill.delivery.background import FIRST as SOON
from overspill.delivery.backgrounds import abandon, background_for, release
from overspill.delivery.circuit import FIRST, LONGEST, Circuit
from overspill.delivery.destinations import Failure, reason
from overspill.delivery.service_destination import ServiceDestination
from overspill.delivery.slots import Overfull
from overspill.delivery.spool_destination import SpoolDestination
from overspill.execution import at_exit, forks, threads
from overspill.execution.loop_thread import Calls
from overspill.previews.notice import Kept
from overspill.spools import flush_job, location
from overspill.spools.absence import Absence
from overspill.spools.own_directory import NotSpooled
from overspill.spools.spool import Spool
from overspill.spools.workspace import Workspace
from overspill.transfer.sync import SyncClient
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Hashable, Iterable

    from overspill.delivery.background import Background
    from overspill.delivery.destinations import Destination
    from overspill.execution.waiting import Reply
    from overspill.spools.spool import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.store_request import StoreRequest

T = TypeVar("T")

__all__ = ["Storage", "partition_for", "reason"]

NO_CLIENT: Final = "no Overspill service is configured"
_NO_THREAD: Final = "this process can start no more threads"
_NO_PLACE: Final = "outputs of this size are not to be stored"
_DOUBT: Final = "; it may be stored there all the same"
_FIRST_ALONE: Final = 1.0
_LONGEST_ALONE: Final = 5.0
"""Seconds that a failing service is left alone where no spool keeps what it misses."""
log: Final = logging.getLogger("overspill")

_JOB: Final = "spool {}"
_ROOM_FOR_ENTRY: Final = 64 * 1024
"""Bytes that the spool needs beside the longest stream: its entry, and a remark at its end."""


def partition_for(client: Client | SyncClient | None, spool: Spool | bool = True) -> Partition | None:  # noqa: FBT001, FBT002
    """Return the part of the spool that belongs to a client's service and key, or None if there is no spool.

    `spool=True` is the spool that the environment names, if there is a client; False is none. Raises
    `ValueError` if a variable of the environment has a wrong value.
    """
    usual = Spool.default() if spool is True and client is not None else None
    found = usual if isinstance(spool, bool) else spool
    if found is None:
        return None
    return (
        found.partition("", "") if client is None else found.partition(client.address.url, client.address.key)
    )


class Slot(NamedTuple):
    """A slot for one output. The destinations in `without` are not asked; `failure` says why."""

    failure: Failure | None = None
    without: frozenset[str] = frozenset()


_ANY: Final = Slot()


class Storage:
    """The destinations of one guard. `client` and `spool` are as for `partition_for`.

    Without `uploads_unasked` it leaves alone what other guards and processes left in the spool. Raises
    `ValueError` if a variable of the environment has a wrong value.
    """

    def __init__(
        self, client: Client | SyncClient | None, *, spool: Spool | bool = True, uploads_unasked: bool = True
    ) -> None:
        self._client = client
        self.partition: Partition | None = partition_for(client, spool)
        self._is_uploading = (
            client is not None and self.partition is not None and not isinstance(spool, Workspace)
        )
        self.exit_seconds: float = location.exit_seconds() if self._is_uploading and uploads_unasked else 0.0
        self._uploads_unasked = uploads_unasked
        self._destinations: dict[str, Destination] = {}
        if client is not None:
            absence = Absence(self.partition) if self.partition is not None and self._is_uploading else None
            self._destinations["service"] = ServiceDestination(client, self._new_circuit, absence)
        if self.partition is not None:
            self._destinations["spool"] = SpoolDestination(self.partition, partial(self._upload, SOON))
        self._most_waiting = location.waiting_bytes()
        self.overfull: int = 0
        """How many outputs got no slot: too many bytes waited already, or they had waited too long."""
        self._background: Background | None = None
        self._end: weakref.finalize[..., Storage] | None = None
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, use a new lock and loop thread, and look into the spool again."""
        self._lock = threading.RLock()
        self._has_looked = False
        self._calls: Calls | None = None
        self._left: weakref.finalize[..., Storage] | None = None

    def _new_circuit(self) -> Circuit:
        if self.partition is None:
            return Circuit(first=_FIRST_ALONE, longest=_LONGEST_ALONE)
        return Circuit(first=FIRST, longest=LONGEST)

    @property
    def session(self) -> str:
        """Return the session of the client; empty if there is no client."""
        return "" if self._client is None else self._client.session

    @property
    def can_keep(self) -> bool:
        """Whether there is a destination at all."""
        return bool(self._destinations)

    def has_any(self, names: Iterable[str]) -> bool:
        """Return whether one of the named destinations is there."""
        return any(name in self._destinations for name in names)

    @property
    def largest(self) -> int | None:
        """The bytes of the largest output that can be stored. None if the service decides, or nothing can."""
        if self.partition is None or "service" in self._destinations:
            return None
        return max(0, self.partition.spool.max_bytes - _ROOM_FOR_ENTRY)

    @property
    def circuit(self) -> Circuit | None:
        """The state machine that says whether the service is left alone. None without a client."""
        service = self._destinations.get("service")
        return service.circuit if isinstance(service, ServiceDestination) else None

    @property
    def background(self) -> Background | None:
        """The thread that sends reports and spooled captures, shared by all guards of a service.

        None without a client.
        """
        if self._client is None:
            return None
        with self._lock:
            if self._background is None:
                self._background = background_for(self._client.address)
                self._end = weakref.finalize(self, abandon, self._background)
                self._end.atexit = False
                if self.partition is not None and self._is_uploading:
                    self._background.register(
                        _JOB.format(self.partition.folder.path), partial(flush_job.job, self.partition)
                    )
            return self._background

    def _upload(self, after: float) -> None:
        """Upload from the spool `after` seconds, in the background. A spool without a service is tidied."""
        if self.partition is not None and self._is_uploading and self.background is not None:
            self.background.schedule(_JOB.format(self.partition.folder.path), after=after)
        elif self.partition is not None:
            threads.begin_blocking(self.partition.tidy_if_due)

    def look(self) -> None:
        """Upload in the background what waits in the spool already, if anything does. Raises nothing."""
        if self.partition is None or not (self._is_uploading and self._uploads_unasked):
            return
        at_exit.expect(self)
        with suppress(NotSpooled, OSError):
            if not self.partition.is_empty():
                self._upload(0.0)

    def close(self, seconds: float = math.inf) -> None:
        """Upload what waits in the spool, for `exit_seconds` or `seconds` at most, whichever is less.

        If other guards of this process use the same service, leave the upload to them. Raises nothing.
        """
        at_exit.forget(self)
        if self._closed():
            self._upload_last(min(seconds, self.exit_seconds))

    def _closed(self) -> bool:
        """End this guard's background work. Return whether it was the last guard of its service."""
        with self._lock:
            background, self._background = self._background, None
            end, self._end = self._end, None
            calls, self._calls = self._calls, None
            left, self._left = self._left, None
        for finalizer in (end, left):
            if finalizer is not None:
                finalizer.detach()
        if calls is not None:
            calls.leave()
        is_last = background is None or release(background)
        service = self._destinations.get("service")
        if isinstance(service, ServiceDestination):
            service.close()
        return is_last

    def _upload_last(self, seconds: float) -> None:
        """Upload what waits in the spool for so many seconds, unless the service is left alone."""
        if self.partition is None or self._client is None or seconds <= 0 or self.is_service_away:
            return
        at = self._client.address
        limits: dict[str, Any] = {"timeout": seconds, "connect_timeout": seconds, "retries": 0}
        with SyncClient(at.url, at.key, session="", **limits) as client:
            flush_job.flush_shortly(self.partition, client, seconds, lock_timeout=seconds)

    @property
    def is_service_away(self) -> bool:
        """Whether the service is left alone, because it failed a moment ago."""
        service = self._destinations.get("service")
        return isinstance(service, ServiceDestination) and service.is_away

    def note_silence(self, why: str) -> None:
        """Leave the service alone for a while, because it did not answer in time."""
        service = self._destinations.get("service")
        if isinstance(service, ServiceDestination):
            service.failed(why, slow=True)

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Reply[T]:
        """Begin a coroutine in the loop thread; return what becomes its result.

        Raises `RuntimeError` if no thread can be started.
        """
        calls = self._calls
        if calls is None or not calls.is_alive:  # else no lock is taken, which an interrupted thread may hold
            try:
                calls = self._new_calls()
            except RuntimeError:
                coroutine.close()
                raise
        return calls.submit(coroutine)

    def _new_calls(self) -> Calls:
        with self._lock:
            if self._calls is None or not self._calls.is_alive:
                self._calls = Calls()
                self._left = weakref.finalize(self, self._calls.leave)
                self._left.atexit = False
            return self._calls

    @asynccontextmanager
    async def slot(self, flow: Hashable, size: int) -> AsyncIterator[Slot]:
        """Hold a slot for an output of `size` bytes; wait until there is one. For the loop thread alone.

        `flow` names whose place in the queue it takes. An output that cannot wait for the service, or has
        waited `QUEUE_SECONDS`, gets a slot for the other destinations.
        """
        slot = Slot()
        async with AsyncExitStack() as held:
            if self._client is not None:
                group = slots.slots_of(self._client.address.url, self._most_waiting)
                seconds = None if self.partition is None else slots.QUEUE_SECONDS
                try:
                    await held.enter_async_context(group.slot((id(self), flow), size, seconds))
                except Overfull as refusal:
                    slot = self._note_overfull(str(refusal))
            if self.partition is not None and (self._client is None or slot.failure is not None):
                # Any number may wait for a disk: it takes them soon, and nothing else could keep them.
                disk = slots.slots_of(str(self.partition.folder.path), sys.maxsize)
                await held.enter_async_context(disk.slot((id(self), flow), size, None))
            yield slot

    def _note_overfull(self, why: str) -> Slot:
        self.overfull += 1
        state_log.note_overfull(why)
        return Slot(Failure(why, is_overfull=True), frozenset({"service"}))

    async def put(self, request: StoreRequest, slot: Slot = _ANY) -> Kept:
        """Store an output; return what became of it. Raises nothing but `CancelledError`."""
        failure = slot.failure
        for name in request.destinations:
            if name not in self._destinations or name in slot.without:
                continue
            try:
                result = await self._destinations[name].put(request, failure)
            except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
                result = Failure(reason(error))
            if isinstance(result, Kept):
                return self._noted(result, failure)
            failure = _joined(failure, result)
        return self._noted(await self._stored_late(request, failure) or self._lost(failure), failure)

    def keep_here(self, request: StoreRequest) -> Kept:
        """Keep an output in the spool, in the caller's thread. For a process that can start no threads."""
        failure = Failure(_NO_THREAD)
        try:
            if self.partition is not None and "spool" in request.destinations:
                entry = self.partition.keep(request, failure.why)
                return Kept(
                    outcome=Outcome.SPOOLED,
                    expires=entry.expires,
                    reason=entry.reason,
                    path=entry.path,
                )
        except (NotSpooled, OSError) as error:
            failure = _joined(failure, Failure(str(error)))
        return self._lost(failure)

    async def _stored_late(self, request: StoreRequest, failure: Failure | None) -> Kept | None:
        """Return what the service has of an output that no other destination took, or None.

        Waits for an upload that still goes on, and asks for one that was not acknowledged.
        """
        service = self._destinations.get("service")
        if failure is None or not isinstance(service, ServiceDestination):
            return None
        try:
            if failure.upload is not None:
                await asyncio.wait([failure.upload.settled], timeout=request.deadline)
                if failure.upload.settled.done():
                    result = failure.upload.settled.result()
                    return result if isinstance(result, Kept) else None
            return await service.found(request) if failure.is_doubtful else None
        except Exception as error:  # noqa: BLE001  (whatever fails here, it is not known to be stored)
            log.debug("it is not known whether %s is stored: %s", request.id, error)
            return None

    def _noted(self, kept: Kept, failure: Failure | None) -> Kept:
        """Log a change. Upload what waits in the spool, also of earlier processes, once the service works."""
        try:
            self._log(kept, failure)
            if kept.outcome is Outcome.SPOOLED:
                self._has_looked = False
            elif kept.outcome is Outcome.CAPTURED and not self._has_looked:
                self._has_looked = True
                threads.begin_blocking(self._upload, 0.0)
        except Exception:  # the boundary: it is kept already
            log.exception("what waits in the spool is not uploaded for now")
        return kept

    def _log(self, kept: Kept, failure: Failure | None) -> None:
        """Log that outputs go elsewhere now. Skip failures that say nothing of the next output.

        Such are a refusal of one capture, a slow upload, and an output that got no slot.
        """
        is_no_change = failure is not None and (
            failure.is_final or failure.is_overfull or failure.upload is not None
        )
        if self._client is not None and not is_no_change:
            state_log.note(
                self._client.address.url, kept, None if self.partition is None else self.partition.folder.path
            )

    def _lost(self, failure: Failure | None) -> Kept:
        if failure is None:
            return Kept(outcome=Outcome.TRUNCATED, reason=_NO_PLACE if self.can_keep else NO_CLIENT)
        doubt = _DOUBT if failure.is_doubtful else ""
        return Kept(outcome=Outcome.TRUNCATED, reason=failure.why + doubt)


def _joined(before: Failure | None, after: Failure) -> Failure:
    if before is None:
        return after
    return before._replace(
        why=f"{before.why}; {after.why}",
        is_doubtful=before.is_doubtful or after.is_doubtful,
        upload=before.upload or after.upload,
    )
