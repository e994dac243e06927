"""Where a spill can be kept: in the service, or on this machine.

`put` raises whatever goes wrong, and `failure` says it in words for a notice.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from overspill import forks
from overspill.body import Filed
from overspill.client import Client
from overspill.errors import (
    Internal,
    OverspillError,
    ProblemError,
    ProtocolError,
    TooManyRequests,
    Unavailable,
    Unreachable,
)
from overspill.spill import Kept
from overspill.spools import flush
from overspill.spools.claim import Claim
from overspill.spools.own_directory import NotSpooled
from overspill.sync import SyncClient
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.circuit import Circuit
    from overspill.spill import Spill
    from overspill.spools.spool import Shelf
    from overspill.wire import Entry

T = TypeVar("T")

_FAILING: Final = (Unreachable, ProtocolError, Unavailable, Internal, TooManyRequests)
"""Failures of the service as a whole; all other problems concern the one capture, the key or a limit."""
_DOUBTFUL: Final = (ProtocolError, Internal, Unavailable)
"""After these the service may have stored a capture all the same; after `Unreachable`, if it was sent."""
_SLOW_MODULES: Final = frozenset({"overspill.transfer.transport", "overspill.transfer.upload"})
_LOOK: Final = 2.0
"""Seconds within which the service must say whether it has a capture that it did not acknowledge."""
_DISK_PATIENCE: Final = 20.0
"""Seconds that an output has for getting to the disk, at least: nothing else can save it then."""
_UNCONFIRMED: Final = "the disk of the local spool did not confirm in time that it is stored"


class Failure(NamedTuple):
    """Why a place does not have it.

    `is_final`: and never will. `is_doubtful`: it may have it, and did not say so.
    """

    why: str
    is_final: bool = False
    is_doubtful: bool = False


class Place(Protocol):
    def unusable(self) -> str:
        """Return why it is not worth trying now; empty where it is."""

    def prepare(self) -> None:
        """Do what a first `put` needs besides: its deadline begins afterwards."""

    async def prepare_async(self) -> None: ...

    def put(self, spill: Spill, before: Failure | None) -> Kept:
        """Keep it within the spill's deadline; `before` is why the place before this one failed.

        Raises `TimeoutError` at the deadline, and whatever else goes wrong.
        """

    async def put_async(self, spill: Spill, before: Failure | None) -> Kept: ...

    def failure(self, spill: Spill, error: Exception) -> Failure:
        """Return what became of a `put` that ended in `error`."""


class ServicePlace:
    """The service behind either client, left alone for a while when it keeps failing."""

    def __init__(self, client: Client | SyncClient, new_circuit: Callable[[], Circuit]) -> None:
        self._client = client
        self._sync = client if isinstance(client, SyncClient) else None
        self._new_circuit = new_circuit
        self._loop: asyncio.AbstractEventLoop | None = None
        self.start_afresh()
        forks.renew_in_child(self)

    def start_afresh(self) -> None:
        self.circuit = self._new_circuit()
        self._failing_since: datetime | None = None
        self._last_failure = ""

    def unusable(self) -> str:
        if self.circuit.allows():
            return ""
        since = "" if self._failing_since is None else f" since {self._failing_since:%Y-%m-%dT%H:%M:%SZ}"
        return f"the service has failed{since}: {self._last_failure}"

    def prepare(self) -> None:
        """Import the HTTP library: on a busy machine that alone may take seconds."""
        for module in _SLOW_MODULES:
            importlib.import_module(module)

    async def prepare_async(self) -> None:
        if not sys.modules.keys() >= _SLOW_MODULES:
            await asyncio.wrap_future(in_thread(self.prepare))

    def put(self, spill: Spill, before: Failure | None) -> Kept:  # noqa: ARG002
        return in_thread(lambda: self._put(spill)).result(spill.deadline)

    async def put_async(self, spill: Spill, before: Failure | None) -> Kept:  # noqa: ARG002
        async with asyncio.timeout(spill.deadline):
            if isinstance(self._client, Client) and self._is_its_loop(self._client):
                return self._captured(await self._client.put(_source(spill), **_metadata(spill)))
            return await asyncio.wrap_future(in_thread(lambda: self._put(spill)))

    def _put(self, spill: Spill) -> Kept:
        return self._captured(self._synchronous().put(_source(spill), **_metadata(spill)))

    def found(self, spill: Spill) -> Kept | None:
        """Ask the service, for a short time, whether it has a spill; None if it has another.

        Raises `TimeoutError` and what asking raises.
        """
        return in_thread(lambda: self._found(spill)).result(_LOOK)

    async def found_async(self, spill: Spill) -> Kept | None:
        async with asyncio.timeout(_LOOK):
            return await asyncio.wrap_future(in_thread(lambda: self._found(spill)))

    def _found(self, spill: Spill) -> Kept | None:
        entry = self._synchronous().get(spill.id)
        return self._captured(entry) if entry.sha256 == spill.sha256.hex() else None

    def _is_its_loop(self, client: Client) -> bool:
        """Whether this event loop is the one that the asynchronous client serves: the first that comes."""
        if not client.belongs_here:
            return False
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            self._loop = loop
        return self._loop is loop

    def _captured(self, entry: Entry) -> Kept:
        self._answered()
        return Kept(outcome=Outcome.CAPTURED, expires=entry.expires)

    def _answered(self) -> None:
        self.circuit.succeeded()
        self._failing_since = None

    def failure(self, spill: Spill, error: Exception) -> Failure:
        if isinstance(error, TimeoutError):
            why = f"the service did not store it within {round(spill.deadline, 1):g} s"
            self._failed(why, slow=True)
            return Failure(why, is_doubtful=True)
        why = reason(error)
        if isinstance(error, _FAILING):
            self._failed(why, slow=False)
        elif isinstance(error, ProblemError):
            self._answered()
        return Failure(why, flush.is_permanent(error), _is_doubtful(error))

    def _failed(self, why: str, *, slow: bool) -> None:
        if self._failing_since is None:
            self._failing_since = datetime.now(UTC)
        self._last_failure = why
        self.circuit.failed(slow=slow)

    def close(self) -> None:
        """Close the synchronous client that was made beside an asynchronous one."""
        if self._sync is not None and self._sync is not self._client:
            self._sync.close()
            self._sync = None

    def _synchronous(self) -> SyncClient:
        if self._sync is None:
            address = self._client.address
            self._sync = SyncClient(
                address.url,
                address.key,
                session=self._client.session,
                timeout=address.timeout,
                connect_timeout=address.connect_timeout,
                retries=address.retries,
            )
        return self._sync


class SpoolPlace:
    """The disk of this machine; `on_kept` hears of everything that is kept here."""

    def __init__(self, shelf: Shelf, on_kept: Callable[[], None]) -> None:
        self.shelf = shelf
        self._on_kept = on_kept

    def unusable(self) -> str:
        return ""

    def prepare(self) -> None:
        pass

    async def prepare_async(self) -> None:
        pass

    def put(self, spill: Spill, before: Failure | None) -> Kept:
        claim = Claim()
        kept = in_thread(lambda: self._keep(spill, before or Failure(""), claim))
        with suppress(TimeoutError):
            return kept.result(_patience(spill))
        if claim.take():
            raise TimeoutError
        try:
            return kept.result(_patience(spill))  # it is being published
        except TimeoutError:
            raise NotSpooled(_UNCONFIRMED) from None

    async def put_async(self, spill: Spill, before: Failure | None) -> Kept:
        claim = Claim()
        kept = asyncio.wrap_future(in_thread(lambda: self._keep(spill, before or Failure(""), claim)))
        try:
            await asyncio.wait([kept], timeout=_patience(spill))
            if not kept.done() and claim.take():
                raise TimeoutError
            await asyncio.wait([kept], timeout=_patience(spill))
            if not kept.done():
                raise NotSpooled(_UNCONFIRMED)
            return kept.result()
        finally:
            kept.cancel()

    def _keep(self, spill: Spill, before: Failure, claim: Claim) -> Kept:
        refused = before.why if before.is_final else ""
        patience = _patience(spill)
        entry = self.shelf.keep(spill, before.why, refused=refused, patience=patience, claim=claim)
        if not refused:
            self._on_kept()
        return Kept(outcome=Outcome.SPOOLED, expires=entry.expires, reason=entry.reason, path=entry.path)

    def failure(self, spill: Spill, error: Exception) -> Failure:
        if isinstance(error, TimeoutError):
            return Failure(f"the local spool did not store it within {round(_patience(spill), 1):g} s")
        return Failure(str(error) if isinstance(error, NotSpooled) else reason(error))


def _patience(spill: Spill) -> float:
    return max(_DISK_PATIENCE, spill.deadline)


def _is_doubtful(error: Exception) -> bool:
    return error.was_sent if isinstance(error, Unreachable) else isinstance(error, _DOUBTFUL)


def _source(spill: Spill) -> Any:
    return spill.body.path if isinstance(spill.body, Filed) else spill.data


def _metadata(spill: Spill) -> dict[str, Any]:
    return {
        "id": spill.id,
        "call_id": spill.origin.call_id,
        "session": spill.origin.session,
        "tool": spill.origin.tool,
        "content_type": spill.content.content_type,
        "ttl": spill.policy.ttl,
        "status": spill.origin.status,
    }


def reason(error: Exception) -> str:
    """What a model and its operator can do something with: the service's own words, else the error's."""
    if isinstance(error, ProblemError):
        return f"the service refused: {error}"
    if isinstance(error, OverspillError):
        return str(error) or type(error).__name__
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  (a tool's own exception, which cannot even say what it is)
        return type(error).__name__


def in_thread(work: Callable[[], T]) -> Future[T]:
    """`work` in a daemon thread of its own, so that one that hangs holds up neither others nor the exit."""
    future: Future[T] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  (whoever waits for the future gets it)
            future.set_exception(error)

    threading.Thread(target=run, name="overspill-put", daemon=True).start()
    return future
