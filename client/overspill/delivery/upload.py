"""One upload of a whole output to the service, which can outlast its agent's wait.

It runs in the loop thread, and raises nothing: its outcome is a `StoreResult` or a `Failure`. It notes in the
service's health how the upload went. `stream_upload` is for outputs that still grow.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from overspill import wire
from overspill.delivery.reasons import reason
from overspill.errors import ProblemError, verdicts
from overspill.errors.client_errors import NotSpooled
from overspill.execution import threads
from overspill.live.labels import has_room
from overspill.previews.notice_facts import StoreResult
from overspill.text.body import FileBody
from overspill.transfer.live_calls import give_up
from overspill.transfer.sync import running
from overspill.wire import Outcome

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable, Coroutine

    from overspill.delivery.health import ServiceHealth
    from overspill.live.ports import Beginning
    from overspill.spools.entries import Spooled
    from overspill.spools.own_directory import LockedFile
    from overspill.spools.partition import Partition
    from overspill.spools.store_request import StoreRequest
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient
    from overspill.wire import Entry

_SMALL: Final = 512 * 1024
"""Bytes that a socket's buffer takes at once, however slow the link is: they are no sign of progress."""
_BUFFERED: Final = 8 * 1024 * 1024
"""Bytes that may be on their way in buffers of systems and proxies."""
_SLOWEST_LINK: Final = 1024 * 1024
"""The least rate, in bytes a second, at which such buffers empty while nothing visible moves."""
_RECENT_SECONDS: Final = 1.0
"""Seconds for which the service counts as working after it has taken bytes of any upload."""

log: Final = logging.getLogger("overspill")


class Failure(NamedTuple):
    """The reason why a destination does not have an output.

    `is_final`: the service will never take the output. `is_refused`: it takes the output only after somebody
    has changed a key or a limit. `is_doubtful`: it may have stored the output without saying so. `upload`
    still goes on, if it is not None. `is_overfull`: the service was not asked, because too many bytes were
    waiting for it, or the output had waited too long.
    """

    reason: str
    is_final: bool = False
    is_doubtful: bool = False
    is_refused: bool = False
    upload: Upload | None = None
    is_overfull: bool = False

    def followed_by(self, after: Failure) -> Failure:
        """Return this failure with what the next destination said."""
        return self._replace(
            reason=f"{self.reason}; {after.reason}",
            is_doubtful=self.is_doubtful or after.is_doubtful,
            upload=self.upload or after.upload,
        )


class Upload:
    """One upload; it begins at once. `settled` becomes its outcome and never raises. For the loop thread."""

    def __init__(self, health: ServiceHealth, client: SyncClient, request: StoreRequest) -> None:
        self.size: int = request.size
        self._health = health
        self._sha256 = request.sha256.hex()
        self._sent_bytes = 0
        self._moved_at = time.monotonic()
        self._stalled = ""
        self._calls, asynchronous = running(client)
        self._loop = asyncio.get_running_loop()
        self.settled: Future[StoreResult | Failure] = self._loop.create_future()
        self._call = self._calls.task(self._new_call(asynchronous, request))
        self._call.add_done_callback(self._settle)

    def _new_call(self, client: Client, request: StoreRequest) -> Coroutine[Any, Any, Entry]:
        """Return the coroutine that stores the output: by a PUT, or by completing its live capture."""
        put = partial(
            client.put,
            request.body.path if isinstance(request.body, FileBody) else request.body,
            sha256=request.sha256,
            progress=self._count_sent,
            **structs.asdict(request.description),
        )
        live = request.origin.live
        return put() if live is None else self._completed(live, client, request, put)

    async def _completed(
        self,
        live: Beginning,
        client: Client,
        request: StoreRequest,
        put: Callable[[], Coroutine[Any, Any, Entry]],
    ) -> Entry:
        """Complete what the service has as a live capture, or store the whole in its place."""
        entry = None
        if live.go_on is not None:
            entry = await live.go_on(_completion(request), self._count_sent)
        if entry is None:
            await give_up(client, live.id, live.producer)
            entry = await put()
        return entry

    def is_moving(self) -> bool:
        """Return whether its bytes move, or those of another upload to the same service."""
        return self._silence_left() > 0

    def stall(self, reason: str) -> None:
        """Give the upload up, because the service seems to hang. `reason` is for the notice."""
        self._stalled = reason
        self._health.failed(reason, slow=True)
        self._call.cancel()

    def cancel(self) -> None:
        """Stop the upload: nobody waits for it any more."""
        self._call.cancel()

    def cancel_from_outside(self) -> None:
        """Do the same as `cancel`, from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the upload with it
            self._loop.call_soon_threadsafe(self._call.cancel)

    def watch(self) -> None:
        """Give the upload up as soon as it stalls."""
        self._calls.task(self._watched())

    async def _watched(self) -> None:
        while not self.settled.done():
            left = self._silence_left()
            if left <= 0:
                self.stall(f"the service took nothing of an upload for {self._allowed_silence():.0f} s")
                return
            await asyncio.sleep(max(left, 0.05))

    def finish_for(
        self,
        partition: Partition,
        entry: Spooled,
        locked: LockedFile | None,
        on_failed: Callable[[], None],
    ) -> None:
        """Remove the spooled copy once the upload has succeeded. Nobody else uploads it while it is `locked`.

        Call `on_failed` if it has failed, unless it was cut off: then nobody here uploads any more.
        """
        lock = partition.claim_upload(entry) if locked is None else locked  # None: it was here already

        def release() -> None:
            if lock is not None:
                lock.close()

        def finish(settled: Future[StoreResult | Failure]) -> None:
            try:
                if isinstance(settled.result(), StoreResult):
                    partition.uploaded(entry)
            except (NotSpooled, OSError) as error:  # it is uploaded once more, which changes nothing
                log.info("the uploaded capture %s is still in the spool: %s", entry.id, error)
            finally:
                release()
            if isinstance(settled.result(), Failure) and not self._is_cut_off:
                on_failed()

        try:
            begin = partial(threads.begin_blocking, finish)
            self._loop.call_soon_threadsafe(self.settled.add_done_callback, begin)
        except RuntimeError:  # the loop has ended, and the upload with it
            release()

    @property
    def _is_cut_off(self) -> bool:
        return self._call.cancelled() and not self._stalled

    def _silence_left(self) -> float:
        """Return how many more seconds of silence are allowed. At 0 or less the upload has stalled."""
        now = time.monotonic()
        own = self._moved_at + self._allowed_silence() - now
        return max(own, self._health.circuit.moved_at + _RECENT_SECONDS - now)

    def _allowed_silence(self) -> float:
        """Return how many seconds of silence are allowed: the time in which full buffers may still empty."""
        if self._sent_bytes <= _SMALL:  # all of it may still be in the socket's buffer
            return 0.0
        return _RECENT_SECONDS + min(self._sent_bytes, _BUFFERED) / _SLOWEST_LINK

    def _count_sent(self, size: int) -> None:
        self._sent_bytes += size
        self._moved_at = time.monotonic()
        if self._sent_bytes > _SMALL:
            self._health.circuit.moved_at = self._moved_at

    def _settle(self, call: Task[Entry]) -> None:
        try:
            self.settled.set_result(self._outcome(call))
        except Exception as error:  # noqa: BLE001  (nobody may wait for ever)
            self.settled.set_result(Failure(reason(error), is_doubtful=True))

    def _outcome(self, call: Task[Entry]) -> StoreResult | Failure:
        if call.cancelled():
            return Failure(self._stalled or "the upload was cut off", is_doubtful=True)
        error = call.exception()
        if error is not None:
            return failure_of(error, self._health)
        if not call.result().is_of(self._sha256):
            return Failure("the service stored it with another digest", is_doubtful=True)
        self._health.circuit.moved_at = time.monotonic()
        return captured(call.result(), self._health)


def _completion(request: StoreRequest) -> wire.Completion:
    description = request.description
    return wire.Completion(
        offset=request.size,
        status=wire.fit(description.status, wire.SHORT_VALUE) if description.status else None,
        sha256=request.sha256.hex(),
        labels=dict(description.labels) if has_room(description.labels, description) else {},
    )


def captured(entry: Entry, health: ServiceHealth) -> StoreResult:
    """Note that the service works. Return what is known of the stored capture."""
    health.answered()
    return StoreResult(outcome=Outcome.CAPTURED, expires=entry.expires)


def failure_of(error: BaseException, health: ServiceHealth) -> Failure:
    """Return why an upload failed. If the service itself failed, note that for the next outputs."""
    text = reason(error)
    if isinstance(error, verdicts.FAILING):
        health.failed(text, slow=False)
    elif isinstance(error, ProblemError):
        health.answered()
    is_final = verdicts.is_permanent(error)
    is_refused = is_final or isinstance(error, verdicts.FORBIDDING)
    return Failure(text, is_final, verdicts.may_be_done(error), is_refused)
