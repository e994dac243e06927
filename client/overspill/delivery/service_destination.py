"""The service as a destination. The loop thread asks it, so an upload can outlast its agent.

An upload is judged by its progress. If it does not end within the policy's `wait` but its bytes move, it has
not failed: it goes on, the circuit stays closed, and the spool has the output until the upload has ended. If
it stalls it is cancelled, and the service is left alone for a while.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.delivery.health import ServiceHealth
from overspill.delivery.upload import Failure, Upload, captured
from overspill.execution import forks, threads
from overspill.transfer.caller import load_transport
from overspill.transfer.sync import SyncClient, running, synchronous_like
from overspill.wire import State

if TYPE_CHECKING:
    from overspill.previews.notice_facts import StoreResult
    from overspill.spools.absence import Absence
    from overspill.spools.store_request import StoreRequest
    from overspill.transfer.client import Client

log: Final = logging.getLogger("overspill")

_SLOW_MODULES: Final = frozenset({"overspill.transfer.transport", "overspill.transfer.compression"})
"""The HTTP library and its dependencies. On a busy machine, just importing them may take seconds."""
_IMPORT_SECONDS: Final = 20.0
_ASK_SECONDS: Final = 2.0
"""Seconds within which the service must say whether it has a capture that it did not acknowledge."""
_MAX_OUTLASTING: Final = 8
_MAX_OUTLASTING_BYTES: Final = 64 * 1024 * 1024
"""The most uploads that go on after their agents got a notice, and their bytes. One alone may be larger."""


class ServiceDestination:
    """The service of a `Client` or a `SyncClient`. It is left alone for a while when it keeps failing."""

    def __init__(
        self,
        client: Client | SyncClient,
        absence: Absence | None = None,
        *,
        has_spool: bool = True,
    ) -> None:
        """`absence` is what all processes of this machine know of the service, if they share a spool.

        A service without a spool beside it (`has_spool`) is tried again sooner.
        """
        self._client = client
        self._sync = client if isinstance(client, SyncClient) else None
        self.health: ServiceHealth = ServiceHealth(client.address.url, absence, has_spool=has_spool)
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Start a forked child without uploads."""
        self._lock = threading.RLock()
        self._outlasting: set[Upload] = set()

    async def put(self, request: StoreRequest, before: Failure | None) -> StoreResult | Failure:  # noqa: ARG002
        """Store the output in the service. Return a failure at once during the pause after failures."""
        if (refusal := self.health.refusal()) is not None:
            return Failure(refusal)
        if not sys.modules.keys() >= _SLOW_MODULES:
            with suppress(TimeoutError):
                await asyncio.wait_for(threads.run_blocking(load_transport), _IMPORT_SECONDS)
        # Its live capture was completed already, by whoever produced it: then there is nothing to send.
        is_stored_live = request.origin.capture and request.origin.live is None
        if is_stored_live and (result := await self.look_up(request)) is not None:
            return result
        upload = Upload(self.health, self.synchronous(), request)
        try:
            await asyncio.wait([upload.settled], timeout=request.wait)
        except BaseException:  # the agent was cancelled
            upload.cancel()
            raise
        return upload.settled.result() if upload.settled.done() else self._outlasted(upload, request)

    async def look_up(self, request: StoreRequest) -> StoreResult | None:
        """Ask the service for a short time whether it has an output that this client did not see stored.

        A live capture that its producer has completed is taken to be the output.
        """
        calls, client = running(self.synchronous())
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                entry = await calls.task(client.get(request.id))
        except Exception as error:  # noqa: BLE001  (whatever fails here, it is not known to be stored)
            log.debug("it is not known whether %s is stored: %s", request.id, error)
            return None
        is_live = bool(request.origin.capture) and entry.state is State.COMPLETE
        is_it = is_live or entry.is_of(request.sha256.hex())
        return captured(entry, self.health) if is_it else None

    def _outlasted(self, upload: Upload, request: StoreRequest) -> Failure:
        seconds = f"{round(request.wait, 1):g} s"
        if not upload.is_moving():
            reason = f"the service did not store it within {seconds}"
            upload.stall(reason)
            return Failure(reason, is_doubtful=True)
        reason = f"its upload takes longer than {seconds} and goes on"
        if not self._adopt(upload):
            upload.cancel()
            return Failure(f"the uploads before it take longer than {seconds}", is_doubtful=True)
        upload.watch()
        return Failure(reason, is_doubtful=True, upload=upload)

    def _adopt(self, upload: Upload) -> bool:
        """Let the upload go on. Return False if too many do already."""
        others = sum(each.size for each in self._outlasting)
        is_many = len(self._outlasting) >= _MAX_OUTLASTING
        if is_many or (others and others + upload.size > _MAX_OUTLASTING_BYTES):
            return False
        self._outlasting.add(upload)
        upload.settled.add_done_callback(lambda _: self._outlasting.discard(upload))
        return True

    def close(self) -> None:
        """Cut off the uploads that go on, and close the synchronous client beside an asynchronous one."""
        for upload in list(self._outlasting):
            upload.cancel_from_outside()
        with self._lock:
            own, self._sync = self._sync, self._client if isinstance(self._client, SyncClient) else None
        if own is not None and own is not self._client:
            own.close()
        self.health.forget()

    def synchronous(self) -> SyncClient:
        """Return the client that uploads; it is made on first use."""
        with self._lock:
            if self._sync is None:
                self._sync = synchronous_like(self._client)
            return self._sync
