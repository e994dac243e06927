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
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill.delivery.circuit import FIRST
from overspill.delivery.destinations import Failure, reason
from overspill.errors import (
    Denied,
    Internal,
    OverspillError,
    ProblemError,
    ProtocolError,
    QuotaExceeded,
    StoreFull,
    TooManyRequests,
    Unavailable,
    Unreachable,
)
from overspill.execution import forks, threads
from overspill.previews.notice import Kept
from overspill.spools import flush
from overspill.spools.absence import Away
from overspill.spools.own_directory import NotSpooled
from overspill.text.body import FileBody
from overspill.transfer.client import load_transport
from overspill.transfer.sync import SyncClient, running
from overspill.wire import Outcome

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable, Coroutine

    from overspill.delivery.circuit import Circuit
    from overspill.spools.absence import Absence
    from overspill.spools.folder import Spooled
    from overspill.spools.spool import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.store_request import StoreRequest
    from overspill.wire import Entry

_FAILING: Final = (Unreachable, ProtocolError, Unavailable, Internal, TooManyRequests)
"""Failures of the service as a whole; all other problems concern the one capture, the key or a limit."""
_DOUBTFUL: Final = (ProtocolError, Internal, Unavailable)
"""After these the service may have stored a capture all the same; after `Unreachable`, if it was sent."""
_REFUSING: Final = (Denied, QuotaExceeded, StoreFull)
"""Refusals that last until somebody changes a key or a limit."""
_SLOW_MODULES: Final = frozenset({"overspill.transfer.transport", "overspill.transfer.upload"})
"""The HTTP library and what belongs to it: on a busy machine importing them alone may take seconds."""
_IMPORT_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 2.0
"""Seconds within which the service must say whether it has a capture that it did not acknowledge."""
_SMALL: Final = 512 * 1024
"""Bytes that a socket's buffer takes at once, however slow the link is: they are no sign of progress."""
_BUFFERED: Final = 8 * 1024 * 1024
"""Bytes that may be on their way in buffers of systems and proxies."""
_SLOWEST_LINK: Final = 1024 * 1024
"""Bytes a second at which such buffers empty at least, while nothing else can be seen to move."""
_RECENT_SECONDS: Final = 1.0
"""For so many seconds after it took bytes of any upload, the service counts as working."""
_MOST_OUTLASTING: Final = 8
_MOST_OUTLASTING_BYTES: Final = 64 * 1024 * 1024
"""The most uploads that go on after their agents got a notice, and their bytes. One alone may be larger."""

log: Final = logging.getLogger("overspill")


class ServiceDestination:
    """The service of a `Client` or a `SyncClient`. It is left alone for a while when it keeps failing."""

    def __init__(
        self,
        client: Client | SyncClient,
        new_circuit: Callable[[], Circuit],
        absence: Absence | None = None,
    ) -> None:
        """`absence` is what all processes of this machine know of the service, if they share a spool."""
        self._client = client
        self._sync = client if isinstance(client, SyncClient) else None
        self._new_circuit = new_circuit
        self._absence = absence
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, begin with no uploads and nothing known of the service."""
        self._lock = threading.RLock()
        self.circuit: Circuit = self._new_circuit()
        self.moved_at: float = -_RECENT_SECONDS
        self._failing_since: datetime | None = None
        self._last_failure = ""
        self._has_noted = False
        self._outlasting: set[Upload] = set()

    async def put(self, request: StoreRequest, before: Failure | None) -> Kept | Failure:  # noqa: ARG002
        """Store the output in the service, unless the service is left alone."""
        if not self._may_be_asked():
            since = "" if self._failing_since is None else f" since {self._failing_since:%Y-%m-%dT%H:%M:%SZ}"
            return Failure(f"the service has failed{since}: {self._last_failure}")
        if not sys.modules.keys() >= _SLOW_MODULES:
            with suppress(TimeoutError):
                await asyncio.wait_for(threads.run_blocking(load_transport), _IMPORT_SECONDS)
        upload = Upload(self, self.synchronous(), request)
        try:
            await asyncio.wait([upload.settled], timeout=request.wait)
        except BaseException:  # the agent was cancelled
            upload.cancel()
            raise
        return upload.settled.result() if upload.settled.done() else self._outlasted(upload, request)

    async def found(self, request: StoreRequest) -> Kept | None:
        """Ask the service for a short time whether it has an output that it did not acknowledge."""
        calls, client = running(self.synchronous())
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                entry = await calls.task(client.get(request.id))
        except Exception:  # noqa: BLE001  (whatever fails here, it is not known to be stored)
            return None
        return self.captured(entry) if entry.sha256 == request.sha256.hex() else None

    def _outlasted(self, upload: Upload, request: StoreRequest) -> Failure:
        seconds = f"{round(request.wait, 1):g} s"
        if not upload.is_moving():
            why = f"the service did not store it within {seconds}"
            upload.stall(why)
            return Failure(why, is_doubtful=True)
        why = f"its upload takes longer than {seconds} and goes on"
        if not self._adopt(upload):
            upload.cancel()
            return Failure(f"the uploads before it take longer than {seconds}", is_doubtful=True)
        upload.watch()
        return Failure(why, is_doubtful=True, upload=upload)

    def _adopt(self, upload: Upload) -> bool:
        """Let the upload go on. Return False if too many do already."""
        others = sum(each.size for each in self._outlasting)
        is_many = len(self._outlasting) >= _MOST_OUTLASTING
        if is_many or (others and others + upload.size > _MOST_OUTLASTING_BYTES):
            return False
        self._outlasting.add(upload)
        upload.settled.add_done_callback(lambda _: self._outlasting.discard(upload))
        return True

    @property
    def is_away(self) -> bool:
        """Return whether the service is left alone, by this process or by others."""
        return self.circuit.is_open or (self._absence is not None and self._absence.pause() > 0)

    def _may_be_asked(self) -> bool:
        """Return whether to ask the service. Once it is due, the caller alone tries it again."""
        if self.circuit.is_open:
            return self.circuit.allows()
        away = None if self._absence is None else self._absence.known()
        if away is None or self._absence is None:
            return True
        self._failing_since, self._last_failure = datetime.fromtimestamp(away.since, UTC), away.why
        if away.next_try > time.time():
            return False
        self._has_noted = True
        self._absence.note(replace(away, next_try=time.time() + FIRST))
        return True

    def captured(self, entry: Entry) -> Kept:
        """Note that the service works; return what is known of the stored capture."""
        self._answered()
        return Kept(outcome=Outcome.CAPTURED, expires=entry.expires)

    def failure(self, error: BaseException) -> Failure:
        """Return why an upload failed. If the service itself failed, note that for the next outputs."""
        why = reason(error)
        if isinstance(error, _FAILING):
            self.failed(why, slow=False)
        elif isinstance(error, ProblemError):
            self._answered()
        is_final = isinstance(error, OverspillError) and flush.is_permanent(error)
        return Failure(why, is_final, _is_doubtful(error), is_final or isinstance(error, _REFUSING))

    def failed(self, why: str, *, slow: bool) -> None:
        """Note that the service failed, and why. `slow`: it did not answer in time."""
        if self._failing_since is None:
            self._failing_since = datetime.now(UTC)
        self._last_failure = why
        self.circuit.failed(slow=slow)
        if slow and self._absence is not None:
            self._has_noted = True
            self._absence.note(Away(time.time() + FIRST, self._failing_since.timestamp(), why))

    def _answered(self) -> None:
        self.circuit.succeeded()
        self._failing_since = None
        if self._has_noted and self._absence is not None:
            self._has_noted = False
            self._absence.end()

    def close(self) -> None:
        """Cut off the uploads that go on, and close the synchronous client beside an asynchronous one."""
        for upload in list(self._outlasting):
            upload.cancel_from_outside()
        with self._lock:
            own, self._sync = self._sync, self._client if isinstance(self._client, SyncClient) else None
        if own is not None and own is not self._client:
            own.close()

    def synchronous(self) -> SyncClient:
        """Return the client that uploads; it is made on first use."""
        with self._lock:
            if self._sync is None:
                address = self._client.address
                self._sync = SyncClient(address.url, address.key, **self._client.settings)
            return self._sync


class Upload:
    """One upload; it begins at once. `settled` becomes its outcome and never raises. For the loop thread."""

    def __init__(self, destination: ServiceDestination, client: SyncClient, request: StoreRequest) -> None:
        self.size: int = request.size
        self._destination = destination
        self._sha256 = request.sha256.hex()
        self._sent = 0
        self._moved_at = time.monotonic()
        self._stalled = ""
        self._calls, asynchronous = running(client)
        self._loop = asyncio.get_running_loop()
        self.settled: Future[Kept | Failure] = self._loop.create_future()
        self._call = self._calls.task(self._sending(asynchronous, request))
        self._call.add_done_callback(self._settle)

    def _sending(self, client: Client, request: StoreRequest) -> Coroutine[Any, Any, Entry]:
        return client.put(
            request.body.path if isinstance(request.body, FileBody) else request.body,
            id=request.id,
            sha256=request.sha256,
            call_id=request.origin.call_id,
            session=request.origin.session,
            tool=request.origin.tool,
            status=request.origin.status,
            content_type=request.content_type,
            ttl=request.ttl,
            progress=self._note,
        )

    def is_moving(self) -> bool:
        """Return whether its bytes move, or those of another upload to the same service."""
        return self._patience_left() > 0

    def stall(self, why: str) -> None:
        """Give the upload up, because the service seems to hang. `why` is the reason for the notice."""
        self._stalled = why
        self._destination.failed(why, slow=True)
        self._call.cancel()

    def cancel(self) -> None:
        """Stop the upload: nobody waits for it any more."""
        self._call.cancel()

    def cancel_from_outside(self) -> None:
        """As `cancel`, from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the upload with it
            self._loop.call_soon_threadsafe(self._call.cancel)

    def watch(self) -> None:
        """Give the upload up as soon as it stalls."""
        self._calls.task(self._watched())

    async def _watched(self) -> None:
        while not self.settled.done():
            left = self._patience_left()
            if left <= 0:
                self.stall(f"the service took nothing of an upload for {self._allowed():.0f} s")
                return
            await asyncio.sleep(max(left, 0.05))

    def finish_for(self, partition: Partition, entry: Spooled) -> None:
        """Remove the spooled copy once the upload has succeeded, and let nobody else upload it meanwhile."""
        claimed = partition.claim_upload(entry)

        def finish(settled: Future[Kept | Failure]) -> None:
            try:
                if isinstance(settled.result(), Kept):
                    partition.uploaded(entry)
            except (NotSpooled, OSError) as error:  # it is uploaded once more, which changes nothing
                log.info("the uploaded capture %s is still in the spool: %s", entry.id, error)
            finally:
                if claimed is not None:
                    claimed.close()

        def begin(settled: Future[Kept | Failure]) -> None:
            threads.begin_blocking(finish, settled)

        try:
            self._loop.call_soon_threadsafe(self.settled.add_done_callback, begin)
        except RuntimeError:  # the loop has ended, and the upload with it
            if claimed is not None:
                claimed.close()

    def _patience_left(self) -> float:
        """Return how many more seconds of silence are allowed. At 0 or less the upload has stalled."""
        now = time.monotonic()
        own = self._moved_at + self._allowed() - now
        return max(own, self._destination.moved_at + _RECENT_SECONDS - now)

    def _allowed(self) -> float:
        """Return how many seconds of silence are allowed: the time in which full buffers may still empty."""
        if self._sent <= _SMALL:  # all of it may still be in the socket's buffer
            return 0.0
        return _RECENT_SECONDS + min(self._sent, _BUFFERED) / _SLOWEST_LINK

    def _note(self, sent: int) -> None:
        self._sent += sent
        self._moved_at = time.monotonic()
        if self._sent > _SMALL:
            self._destination.moved_at = self._moved_at

    def _settle(self, call: Task[Entry]) -> None:
        try:
            self.settled.set_result(self._outcome(call))
        except Exception as error:  # noqa: BLE001  (nobody may wait for ever)
            self.settled.set_result(Failure(reason(error), is_doubtful=True))

    def _outcome(self, call: Task[Entry]) -> Kept | Failure:
        if call.cancelled():
            return Failure(self._stalled or "the upload was cut off", is_doubtful=True)
        error = call.exception()
        if error is not None:
            return self._destination.failure(error)
        if call.result().sha256 != self._sha256:
            return Failure("the service stored it with another digest", is_doubtful=True)
        self._destination.moved_at = time.monotonic()
        return self._destination.captured(call.result())


def _is_doubtful(error: BaseException) -> bool:
    return error.was_sent if isinstance(error, Unreachable) else isinstance(error, _DOUBTFUL)
