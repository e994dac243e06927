"""Stores an output in the first of its destinations that takes it, once the output has a slot.

All of this runs in the loop thread, for synchronous and asynchronous callers alike. The service has the
seconds that the policy's `wait` gives it; the spool has a deadline of its own. Nothing here raises: each
failure becomes a reason that the notice can state.
"""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill.delivery import state_log
from overspill.delivery.background import FIRST_RETRY_SECONDS
from overspill.delivery.loop_access import LoopAccess
from overspill.delivery.reasons import reason
from overspill.delivery.service_destination import ServiceDestination
from overspill.delivery.slot_wait import GuardSlots, SlotWait
from overspill.delivery.spool_destination import SpoolDestination, kept_in_spool
from overspill.delivery.spool_uploads import SpoolUploads
from overspill.delivery.stream_upload import StreamUpload
from overspill.delivery.upload import Failure
from overspill.errors.client_errors import NotSpooled
from overspill.execution import at_exit, forks, threads
from overspill.execution.submissions import NoLoop
from overspill.previews.notice_facts import StoreResult
from overspill.spools import location
from overspill.spools.absence import Absence
from overspill.spools.spool import partition_for
from overspill.spools.workspace import Workspace
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterable

    from overspill.delivery.health import ServiceHealth
    from overspill.execution.waiting import Reply
    from overspill.live.ports import Description
    from overspill.shapes.chunk_stream import ChunkStream
    from overspill.spools.partition import Partition
    from overspill.spools.spool import Spool
    from overspill.spools.store_request import StoreRequest
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient

T = TypeVar("T")

NO_CLIENT: Final = "no Overspill service is configured"
_NO_DESTINATION: Final = "outputs of this size are not to be stored"
_DOUBT: Final = "; it may be stored there all the same"
log: Final = logging.getLogger("overspill")

_ROOM_FOR_ENTRY: Final = 64 * 1024
"""Bytes that the spool needs beside the longest stream: its entry, and a remark at its end."""


class Storage:
    """The destinations of one guard. `client` and `spool` are as for `partition_for`.

    Without `uploads_unasked`, it does not upload what other guards and processes left in the spool. Raises
    `ValueError` if a variable of the environment has a wrong value.
    """

    def __init__(
        self, client: Client | SyncClient | None, *, spool: Spool | bool = True, uploads_unasked: bool = True
    ) -> None:
        self._client = client
        self.partition: Partition | None = partition_for(client, spool)
        has_spool, is_workspace = self.partition is not None, isinstance(spool, Workspace)
        self.uploads: SpoolUploads = SpoolUploads(
            client, self.partition, is_on=client is not None and has_spool and not is_workspace
        )
        self._uploads_unasked = self.uploads.is_on and uploads_unasked
        self.exit_seconds: float = location.exit_seconds() if self._uploads_unasked else 0.0
        self._service: ServiceDestination | None = None
        self._destinations: dict[str, ServiceDestination | SpoolDestination] = {}
        if client is not None:
            absence = Absence(self.partition) if self.partition is not None and self.uploads.is_on else None
            self._service = ServiceDestination(client, absence, has_spool=has_spool)
            self._destinations["service"] = self._service
        if self.partition is not None:
            self._destinations["spool"] = SpoolDestination(
                self.partition, partial(self.uploads.begin, FIRST_RETRY_SECONDS)
            )
        self.loop: LoopAccess = LoopAccess()
        self.slots: GuardSlots = GuardSlots(
            None if client is None else client.address.url,
            None if self.partition is None else str(self.partition.folder.path),
            location.waiting_bytes(),
        )
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Look into the spool again in a forked child."""
        self._has_looked = False

    @property
    def session(self) -> str:
        """Return the session of the client; empty if there is no client."""
        return "" if self._client is None else self._client.session

    @property
    def can_keep(self) -> bool:
        """Whether there is any destination."""
        return bool(self._destinations)

    def has_any(self, names: Iterable[str]) -> bool:
        """Return whether any of the named destinations exists."""
        return any(name in self._destinations for name in names)

    @property
    def largest(self) -> int | None:
        """The bytes of the largest output that can be stored. None if the service decides, or nothing can."""
        if self.partition is None or "service" in self._destinations:
            return None
        return max(0, self.partition.spool.max_bytes - _ROOM_FOR_ENTRY)

    @property
    def health(self) -> ServiceHealth | None:
        """The health of the service. None without a client."""
        return None if self._service is None else self._service.health

    def upload_leftovers(self) -> None:
        """Upload in the background what earlier guards and processes left in the spool. Raises nothing."""
        if self._uploads_unasked:
            at_exit.register(self)
            self.uploads.begin_if_any()

    def close(self, seconds: float = math.inf) -> None:
        """Upload what waits in the spool, for `exit_seconds` or `seconds` at most, whichever is less.

        If other guards of this process use the same service, leave the upload to them. Raises nothing.
        """
        at_exit.unregister(self)
        self.loop.leave()
        is_last = self.uploads.leave()
        if self._service is None:
            return
        self._service.close()
        if is_last and not self._service.health.is_away:
            self.uploads.finish(min(seconds, self.exit_seconds))
        self._service.health.forget()

    def begin_live(
        self, stream: ChunkStream, description: Description, flow: Hashable
    ) -> StreamUpload | None:
        """Begin to upload a stream while it grows. Return None if there is no service or thread for it."""
        if self._service is None:
            return None
        with suppress(NoLoop):
            return StreamUpload(stream, description, (id(self), flow), self._service, self.loop)
        return None

    def begin(
        self, flow: Hashable, size: int, store: Callable[[Failure | None], Coroutine[Any, Any, T]]
    ) -> Reply[T]:
        """Run `store(None)` in the loop thread, once there is a slot for an output of `size` bytes.

        `flow` is the output's session: flows take turns in the queue. An output that cannot wait for the
        service, or has waited `QUEUE_SECONDS`, gets a slot for the other destinations, and `store` the
        reason. Cancelling the reply takes the output out of the queue, or cancels the coroutine. Raises
        `NoLoop`.
        """
        return self.loop.enter(SlotWait(self.slots, flow, size, store))

    async def put(self, request: StoreRequest, before: Failure | None) -> StoreResult:
        """Store an output; return what became of it. Raises nothing but `CancelledError`.

        `before` says why it has no slot of the service, which is not asked then.
        """
        failure = before
        for name in request.destinations:
            if name not in self._destinations or (name == "service" and before is not None):
                continue
            try:
                result = await self._destinations[name].put(request, failure)
            except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
                result = Failure(reason(error))
            if isinstance(result, StoreResult):
                return self._note_result(result, failure)
            failure = result if failure is None else failure.followed_by(result)
        return self._note_result(await self._stored_late(request, failure) or self._lost(failure), failure)

    def keep_here(self, request: StoreRequest, reason: str) -> StoreResult:
        """Keep an output in the spool, in the caller's thread. `reason` says why no other thread does it."""
        failure = Failure(reason)
        try:
            if self.partition is not None and "spool" in request.destinations:
                entry = self.partition.keep(request, failure.reason)
                return kept_in_spool(entry, failure)
        except (NotSpooled, OSError) as error:
            failure = failure.followed_by(Failure(str(error)))
        return self._lost(failure)

    async def _stored_late(self, request: StoreRequest, failure: Failure | None) -> StoreResult | None:
        """Return what the service has of an output that no other destination took, or None.

        Waits for an upload that still goes on, and asks for one that was not acknowledged.
        """
        if failure is None or self._service is None:
            return None
        try:
            if failure.upload is not None:
                await asyncio.wait([failure.upload.settled], timeout=request.deadline)
                if failure.upload.settled.done():
                    result = failure.upload.settled.result()
                    return result if isinstance(result, StoreResult) else None
            return await self._service.look_up(request) if failure.is_doubtful else None
        except Exception as error:  # noqa: BLE001  (whatever fails here, it is not known to be stored)
            log.debug("it is not known whether %s is stored: %s", request.id, error)
            return None

    def _note_result(self, result: StoreResult, failure: Failure | None) -> StoreResult:
        """Log a change. Upload what waits in the spool, also of earlier processes, once the service works."""
        try:
            self._log(result, failure)
            if result.outcome is Outcome.SPOOLED:
                self._has_looked = False
            elif result.outcome is Outcome.CAPTURED and not self._has_looked:
                self._has_looked = True
                threads.begin_blocking(self.uploads.begin, 0.0)
        except Exception:  # the boundary: it is kept already
            log.exception("what waits in the spool is not uploaded for now")
        return result

    def _log(self, result: StoreResult, failure: Failure | None) -> None:
        """Log that outputs go elsewhere now. Skip failures that predict nothing about the next output.

        These are a refusal of one capture, a slow upload, and an output that got no slot.
        """
        is_no_change = failure is not None and (
            failure.is_final or failure.is_overfull or failure.upload is not None
        )
        if self._client is not None and not is_no_change:
            state_log.note(
                self._client.address.url,
                result,
                None if self.partition is None else self.partition.folder.path,
            )

    def _lost(self, failure: Failure | None) -> StoreResult:
        if failure is None:
            return StoreResult(
                outcome=Outcome.TRUNCATED, reason=_NO_DESTINATION if self.can_keep else NO_CLIENT
            )
        doubt = _DOUBT if failure.is_doubtful else ""
        return StoreResult(outcome=Outcome.TRUNCATED, reason=failure.reason + doubt)
