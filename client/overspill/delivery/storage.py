"""How an output is kept: in the first of its destinations that takes it, once its turn has come.

All of it happens in the loop thread, whoever waits. The service has the agent's patience, the spool a
deadline of its own. Nothing here raises: whatever goes
wrong becomes a reason that the notice can state.
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
    """Where the captures of this client wait: True is the spool that the environment names, False none.

    Without a client there is none but a spool that is given. Raises `ValueError` if the environment
    makes no sense.
    """
    usual = Spool.default() if spool is True and client is not None else None
    found = usual if isinstance(spool, bool) else spool
    if found is None:
        return None
    return (
        found.partition("", "") if client is None else found.partition(client.address.url, client.address.key)
    )


class Turn(NamedTuple):
    """When an output may be stored: without the named destinations, which `failure` tells of."""

    failure: Failure | None = None
    without: frozenset[str] = frozenset()


_ANY: Final = Turn()


class Storage:
    """Takes either client, and a spool as `partition_for` does."""

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
        """How many outputs did not wait for their turn: too much waited already, or for too long."""
        self._background: Background | None = None
        self._end: weakref.finalize[..., Storage] | None = None
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, look anew for what waits in the spool."""
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
        """Whether there is any place at all to store an output."""
        return bool(self._destinations)

    def has_any(self, places: Iterable[str]) -> bool:
        """Return whether one of the named places is there."""
        return any(name in self._destinations for name in places)

    @property
    def largest(self) -> int | None:
        """Bytes of the largest output that can be stored; None if the service decides."""
        if self.partition is None or "service" in self._destinations:
            return None
        return max(0, self.partition.spool.max_bytes - _ROOM_FOR_ENTRY)

    @property
    def circuit(self) -> Circuit | None:
        """Whether the service is being left alone; None without a client."""
        service = self._destinations.get("service")
        return service.circuit if isinstance(service, ServiceDestination) else None

    @property
    def background(self) -> Background | None:
        """Sends later what need not be sent now; None without a client."""
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
        """Look into the spool in the background; what is not uploaded is tidied in a thread of its own."""
        if self.partition is not None and self._is_uploading and self.background is not None:
            self.background.schedule(_JOB.format(self.partition.folder.path), after=after)
        elif self.partition is not None:
            threads.begin_blocking(self.partition.tidy_if_due)

    def look(self) -> None:
        """Upload in the background what waits already, if anything does. Raises nothing."""
        if self.partition is None or not (self._is_uploading and self._uploads_unasked):
            return
        at_exit.expect(self)
        with suppress(NotSpooled, OSError):
            if not self.partition.is_empty():
                self._upload(0.0)

    def close(self, seconds: float = math.inf) -> None:
        """Upload what waits, unless another guard of this process does; for `exit_seconds` at most."""
        at_exit.forget(self)
        if self._closed():
            self._upload_last(min(seconds, self.exit_seconds))

    def _closed(self) -> bool:
        """Close all that works in the background; return whether nothing of this process does any more."""
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
        """Upload what waits, unless the service is left alone. Raises nothing."""
        if self.partition is None or self._client is None or seconds <= 0 or self.is_service_away:
            return
        at = self._client.address
        limits: dict[str, Any] = {"timeout": seconds, "connect_timeout": seconds, "retries": 0}
        with SyncClient(at.url, at.key, session="", **limits) as client:
            flush_job.flush_shortly(self.partition, client, seconds, lock_timeout=seconds)

    @property
    def is_service_away(self) -> bool:
        """Whether the service is left alone, since it failed just now."""
        service = self._destinations.get("service")
        return isinstance(service, ServiceDestination) and service.is_away

    def note_silence(self, why: str) -> None:
        """Leave the service alone for a while, for it did not answer."""
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
    async def turn(self, flow: Hashable, size: int) -> AsyncIterator[Turn]:
        """Wait until an output of so many bytes may be stored. For the loop thread, as is `put`."""
        turn = Turn()
        async with AsyncExitStack() as held:
            if self._client is not None:
                group = slots.slots_of(self._client.address.url, self._most_waiting)
                seconds = None if self.partition is None else slots.QUEUE_SECONDS
                try:
                    await held.enter_async_context(group.slot((id(self), flow), size, seconds))
                except Overfull as refusal:
                    turn = self._passed_over(str(refusal))
            if self.partition is not None and (self._client is None or turn.failure is not None):
                disk = slots.slots_of(str(self.partition.folder.path), sys.maxsize)  # it takes them soon
                await held.enter_async_context(disk.slot((id(self), flow), size, None))
            yield turn

    def _passed_over(self, why: str) -> Turn:
        self.overfull += 1
        state_log.note_overfull(why)
        return Turn(Failure(why, is_overfull=True), frozenset({"service"}))

    async def put(self, request: StoreRequest, turn: Turn = _ANY) -> Kept:
        """Return what became of it. Raises nothing but `CancelledError`."""
        failure = turn.failure
        for name in request.destinations:
            if name not in self._destinations or name in turn.without:
                continue
            try:
                result = await self._destinations[name].put(request, failure)
            except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
                result = Failure(reason(error))
            if isinstance(result, Kept):
                return self._noted(result, failure)
            failure = _joined(failure, result)
        return self._noted(await self._saved(request, failure) or self._lost(failure), failure)

    def keep_here(self, request: StoreRequest) -> Kept:
        """Keep an output in the spool, in the caller's thread: the process can start no others."""
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

    async def _saved(self, request: StoreRequest, failure: Failure | None) -> Kept | None:
        """Wait for an upload that still goes on, and ask for one that was not acknowledged."""
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
        """Log changes, and upload what waits once the service works, also what earlier processes left."""
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
        """Tell the logger of changes. A refusal of one capture is none, nor is a slow upload."""
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
