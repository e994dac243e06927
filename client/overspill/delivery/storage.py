"""How a spill is kept: in the first of its places that takes it, with and without an event loop.

The service has the agent's patience, the spool a deadline of its own. Nothing here raises: whatever goes
wrong becomes a reason that the notice can state.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill.delivery import state_log
from overspill.delivery.background import FIRST as SOON
from overspill.delivery.background import abandon, release, sender_to
from overspill.delivery.circuit import FIRST, LONGEST, Circuit
from overspill.delivery.destinations import Failure, in_thread, reason
from overspill.delivery.service_destination import ServicePlace
from overspill.delivery.spool_destination import SpoolPlace
from overspill.execution import at_exit, forks
from overspill.execution.waiting import finished, wait_blocking, wait_on_loop
from overspill.previews.notice import Kept
from overspill.spools import flush_job, location
from overspill.spools.absence import Absence
from overspill.spools.own_directory import NotSpooled
from overspill.spools.spool import Spool
from overspill.spools.workspace import Workspace
from overspill.transfer.sync import SyncClient
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.delivery.background import Sender
    from overspill.delivery.destinations import Place
    from overspill.execution.waiting import Wait
    from overspill.spools.spool import Shelf
    from overspill.transfer.client import Client
    from overspill.transfer.store_request import StoreRequest

__all__ = ["Storage", "reason", "shelf_for"]

NO_CLIENT: Final = "no Overspill service is configured"
_NO_PLACE: Final = "outputs of this size are not to be stored"
_DOUBT: Final = "; it may be stored there all the same"
_FIRST_ALONE: Final = 1.0
_LONGEST_ALONE: Final = 5.0
"""Seconds that a failing service is left alone where no spool keeps what it misses."""
log: Final = logging.getLogger("overspill")

_JOB: Final = "spool {}"
_ROOM_FOR_ENTRY: Final = 64 * 1024
"""Bytes that the spool needs beside the longest stream: its entry, and a remark at its end."""


def shelf_for(client: Client | SyncClient | None, spool: Spool | bool = True) -> Shelf | None:  # noqa: FBT001, FBT002
    """Where the captures of this client wait: True is the spool that the environment names, False none.

    Without a client there is none but a spool that is given. Raises `ValueError` where the environment
    makes no sense.
    """
    usual = Spool.default() if spool is True and client is not None else None
    found = usual if isinstance(spool, bool) else spool
    if found is None:
        return None
    return found.shelf("", "") if client is None else found.shelf(client.address.url, client.address.key)


class Storage:
    """Takes either client, and a spool as `shelf_for` does."""

    def __init__(
        self, client: Client | SyncClient | None, *, spool: Spool | bool = True, uploads_unasked: bool = True
    ) -> None:
        self._client = client
        self.shelf: Shelf | None = shelf_for(client, spool)
        self._is_uploading = (
            client is not None and self.shelf is not None and not isinstance(spool, Workspace)
        )
        self.exit_seconds: float = location.exit_seconds() if self._is_uploading and uploads_unasked else 0.0
        self._uploads_unasked = uploads_unasked
        self._places: dict[str, Place] = {}
        if client is not None:
            absence = Absence(self.shelf) if self.shelf is not None and self._is_uploading else None
            self._places["service"] = ServicePlace(client, self._new_circuit, absence)
        if self.shelf is not None:
            self._places["spool"] = SpoolPlace(self.shelf, partial(self._upload, SOON))
        self._sender: Sender | None = None
        self._end: weakref.finalize[..., Storage] | None = None
        self.reset_after_fork()
        forks.register(self)

    def reset_after_fork(self) -> None:
        """In a forked child, look anew for what waits in the spool."""
        self._lock = threading.RLock()
        self._has_looked = False

    def _new_circuit(self) -> Circuit:
        if self.shelf is None:
            return Circuit(first=_FIRST_ALONE, longest=_LONGEST_ALONE)
        return Circuit(first=FIRST, longest=LONGEST)

    @property
    def session(self) -> str:
        """Return the session of the client; empty where there is no client."""
        return "" if self._client is None else self._client.session

    @property
    def can_keep(self) -> bool:
        """Whether there is any place at all to store an output."""
        return bool(self._places)

    def has_any(self, names: Iterable[str]) -> bool:
        """Return whether one of the named destinations exists."""
        return any(name in self._places for name in names)

    @property
    def largest(self) -> int | None:
        """Bytes of the largest output that can be stored; None where the service decides."""
        if self.shelf is None or "service" in self._places:
            return None
        return max(0, self.shelf.spool.max_bytes - _ROOM_FOR_ENTRY)

    @property
    def circuit(self) -> Circuit | None:
        """Whether the service is being left alone; None without a client."""
        service = self._places.get("service")
        return service.circuit if isinstance(service, ServicePlace) else None

    @property
    def sender(self) -> Sender | None:
        """Sends later what need not be sent now; None without a client."""
        if self._client is None:
            return None
        with self._lock:
            if self._sender is None:
                self._sender = sender_to(self._client.address)
                self._end = weakref.finalize(self, abandon, self._sender)
                self._end.atexit = False
                if self.shelf is not None and self._is_uploading:
                    self._sender.register(
                        _JOB.format(self.shelf.folder.path), partial(flush_job.job, self.shelf)
                    )
            return self._sender

    def _upload(self, after: float) -> None:
        """Let the sender look into the spool; what is not uploaded is tidied in a thread of its own."""
        if self.shelf is not None and self._is_uploading and self.sender is not None:
            self.sender.wake(_JOB.format(self.shelf.folder.path), after=after)
        elif self.shelf is not None:
            in_thread(self.shelf.tidy_if_due)

    def look(self) -> None:
        """Upload in the background what waits already, if anything does. Raises nothing."""
        if self.shelf is None or not (self._is_uploading and self._uploads_unasked):
            return
        at_exit.expect(self)
        with suppress(NotSpooled, OSError):
            if not self.shelf.is_empty():
                self._upload(0.0)

    def close(self, seconds: float = math.inf) -> None:
        """Upload what waits, unless another guard of this process does; for `exit_seconds` at most."""
        at_exit.forget(self)
        if self._closed():
            self._upload_last(min(seconds, self.exit_seconds))

    def _closed(self) -> bool:
        """Close all that works in the background; return whether nothing of this process does any more."""
        with self._lock:
            sender, self._sender = self._sender, None
            end, self._end = self._end, None
        if end is not None:
            end.detach()
        is_last = sender is None or release(sender)
        service = self._places.get("service")
        if isinstance(service, ServicePlace):
            service.close()
        return is_last

    def _upload_last(self, seconds: float) -> None:
        """Upload what waits, unless the service is left alone. Raises nothing."""
        if self.shelf is None or self._client is None or seconds <= 0 or self.is_service_away:
            return
        at = self._client.address
        limits: dict[str, Any] = {"timeout": seconds, "connect_timeout": seconds, "retries": 0}
        with SyncClient(at.url, at.key, session="", **limits) as client:
            flush_job.flush_shortly(self.shelf, client, seconds, patience=seconds)

    @property
    def is_service_away(self) -> bool:
        """Whether the service is left alone, since it failed just now."""
        service = self._places.get("service")
        return isinstance(service, ServicePlace) and service.is_away

    def note_silence(self, why: str) -> None:
        """Leave the service alone for a while, for it did not answer."""
        service = self._places.get("service")
        if isinstance(service, ServicePlace):
            service.failed(why, slow=True)

    async def put(self, request: StoreRequest) -> Kept:
        """Return what became of it. Raises nothing but `CancelledError`."""
        return await self._put(wait_on_loop, request)

    def put_sync(self, request: StoreRequest) -> Kept:
        """As `put`, for code without an event loop."""
        return finished(self._put(wait_blocking, request))

    async def _put(self, wait: Wait, request: StoreRequest) -> Kept:
        failure: Failure | None = None
        for place in self._places_for(request):
            result = await _attempt(place, wait, request, failure)
            if isinstance(result, Kept):
                return self._noted(result, failure)
            failure = _joined(failure, result)
        return self._noted(await self._saved(wait, request, failure) or self._lost(failure), failure)

    async def _saved(self, wait: Wait, request: StoreRequest, failure: Failure | None) -> Kept | None:
        """Wait for an upload that still goes on, and ask for one that was not acknowledged."""
        service = self._places.get("service")
        if failure is None or not isinstance(service, ServicePlace):
            return None
        try:
            if failure.upload is not None and await wait(failure.upload.settled, request.deadline):
                result = failure.upload.settled.result()
                return result if isinstance(result, Kept) else None
            return await service.found(wait, request) if failure.is_doubtful else None
        except Exception as error:  # noqa: BLE001  (whatever fails here, it is not known to be stored)
            log.debug("it is not known whether %s is stored: %s", request.id, error)
            return None

    def _places_for(self, request: StoreRequest) -> list[Place]:
        names = request.destinations
        return [self._places[name] for name in names if name in self._places]

    def _noted(self, kept: Kept, failure: Failure | None) -> Kept:
        """Log changes, and upload what waits once the service works, also what earlier processes left."""
        try:
            self._log(kept, failure)
            if kept.outcome is Outcome.SPOOLED:
                self._has_looked = False
            elif kept.outcome is Outcome.CAPTURED and not self._has_looked:
                self._has_looked = True
                self._upload(0.0)
        except Exception:  # the boundary: it is kept already
            log.exception("what waits in the spool is not uploaded for now")
        return kept

    def _log(self, kept: Kept, failure: Failure | None) -> None:
        """Tell the logger of changes. A refusal of one capture is none, nor is a slow upload."""
        is_no_change = failure is not None and (failure.is_final or failure.upload is not None)
        if self._client is not None and not is_no_change:
            state_log.note(
                self._client.address.url, kept, None if self.shelf is None else self.shelf.folder.path
            )

    def _lost(self, failure: Failure | None) -> Kept:
        if failure is None:
            return Kept(outcome=Outcome.TRUNCATED, reason=_NO_PLACE if self.can_keep else NO_CLIENT)
        doubt = _DOUBT if failure.is_doubtful else ""
        return Kept(outcome=Outcome.TRUNCATED, reason=failure.why + doubt)


async def _attempt(place: Place, wait: Wait, request: StoreRequest, before: Failure | None) -> Kept | Failure:
    try:
        return await place.put(wait, request, before)
    except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
        return Failure(reason(error))


def _joined(before: Failure | None, after: Failure) -> Failure:
    if before is None:
        return after
    return before._replace(
        why=f"{before.why}; {after.why}",
        is_doubtful=before.is_doubtful or after.is_doubtful,
        upload=before.upload or after.upload,
    )
