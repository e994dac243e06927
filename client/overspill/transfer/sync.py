"""The synchronous client: every method of `Client`, run by the loop thread, with the same parameters."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

from overspill.errors import ClientClosed
from overspill.execution.calls import OWN_LOOP, Calls
from overspill.transfer.caller import CONNECT_TIMEOUT, RETRIES, TIMEOUT
from overspill.transfer.client import Client
from overspill.transfer.closing import CLOSED
from overspill.transfer.iteration import Followed, Iteration

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from overspill.execution.waiting import Reply
    from overspill.live.live_capture import LiveCapture
    from overspill.live.sync_capture import SyncLiveCapture
    from overspill.transfer.address import Address

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


def _method(
    asynchronous: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """Return the synchronous form of a coroutine method."""

    @functools.wraps(asynchronous)
    def method(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        calls, client = self._running()
        return calls.run(asynchronous(client, *args, **kwargs))

    return method


def _lasting(
    asynchronous: Callable[Concatenate[Client, P], A], synchronous: Callable[[Calls, A, SyncClient], T]
) -> Callable[Concatenate[SyncClient, P], T]:
    """Return the synchronous form of a method whose result goes on using the client, so it keeps it."""

    @functools.wraps(asynchronous)
    def method(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        calls, client = self._running()
        return synchronous(calls, asynchronous(client, *args, **kwargs), self)

    return method


def _live(calls: Calls, capture: LiveCapture, client: SyncClient) -> SyncLiveCapture:
    from overspill.live.sync_capture import SyncLiveCapture  # noqa: PLC0415  (loaded when it is needed)

    client.has_live = True
    return SyncLiveCapture(calls, capture, client)


class SyncClient:
    """Overspill for synchronous code, from any thread: `with SyncClient() as client`.

    Parameters, methods and errors are those of `Client`. An event loop in a background thread does the work
    of all clients of the process. It starts with the first call, and ends when the last client is closed or
    garbage-collected. A forked child gets its own. Inside a running event loop a call would block that loop:
    use `Client` there.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        session: str | None = None,
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        retries: int = RETRIES,
        compress: bool = True,
    ) -> None:
        self._new_client = functools.partial(
            Client,
            url,
            key,
            session=session,
            timeout=timeout,
            connect_timeout=connect_timeout,
            retries=retries,
            compress=compress,
        )
        self._client = self._new_client()
        self.has_live: bool = False
        """Whether there were live captures, which end with the client."""
        self._lock = threading.RLock()
        self._is_closed = False
        self._calls: Calls | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        _clients.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a client like this one, with its key, and connections of its own."""
        return functools.partial(type(self), **self.settings), (self.address.url, self.address.key)

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    @property
    def address(self) -> Address:
        """Return the URL and key of the service, and how it is reached."""
        return self._client.address

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword parameters that make a client like this one, besides the URL and the key."""
        return self._client.settings

    @property
    def session(self) -> str:
        """Return the session of captures whose call names no other."""
        return self._client.session

    def __enter__(self) -> Self:
        with self._lock:
            if self._is_closed:
                self._client, self._is_closed = self._new_client(), False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, end the calls that run, and end the thread if no other client needs it.

        Live captures whose block is not left end as partial first, within 5 seconds. Calls raise
        `ClientClosed` from then on; `with` opens it again. Raises `RuntimeError` in the loop thread if there
        are such captures.
        """
        if self.has_live:
            from overspill.live.sync_capture import end_open  # noqa: PLC0415  (loaded already)

            end_open(self, "its client was closed")
        with self._lock:
            self._is_closed = True
            self._calls = None
            finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer()

    def begin(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> Reply[T]:
        """Begin `work` with the asynchronous client in the loop thread. Return a reply with its result.

        For tools that are called from synchronous and from asynchronous code. Raises `ClientClosed`, and
        `RuntimeError` if no thread can be started, and in the loop thread itself.
        """
        calls, client = self._running()
        if calls.thread.is_here:
            raise RuntimeError(OWN_LOOP)
        return calls.submit(work(client))

    def _running(self) -> tuple[Calls, Client]:
        calls, client = self._calls, self._client
        if calls is not None and calls.is_alive:  # without the lock, which an interrupted thread may hold
            return calls, client
        with self._lock:
            if self._is_closed:
                raise ClientClosed(CLOSED)
            if self._calls is not None and not self._calls.is_alive:
                self._abandon()
            if self._calls is None:
                self._calls = Calls()
                self._finalizer = weakref.finalize(self, _end, self._calls, self._client)
            return self._calls, self._client

    def _reset(self) -> None:
        """Leave the parent's loop and sockets alone in a forked child: its thread does not exist here."""
        _abandoned.append((self._calls, self._client))
        self._lock = threading.RLock()
        self._abandon()

    def _abandon(self) -> None:
        """Make a new client, because the old one's thread no longer runs."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self._client = self._new_client()
        self._calls = self._finalizer = None

    put: Final = _method(Client.put)
    get: Final = _method(Client.get)
    readers: Final = _method(Client.readers)
    list: Final = _method(Client.list)
    iterate: Final = _lasting(Client.iterate, Iteration)
    set_ttl: Final = _method(Client.set_ttl)
    delete: Final = _method(Client.delete)
    delete_session: Final = _method(Client.delete_session)
    erase_tenant: Final = _method(Client.erase_tenant)
    hold: Final = _method(Client.hold)
    release: Final = _method(Client.release)
    hold_session: Final = _method(Client.hold_session)
    release_session: Final = _method(Client.release_session)

    stream: Final = _lasting(Client.stream, Iteration)
    content: Final = _method(Client.content)
    download: Final = _method(Client.download)

    head: Final = _method(Client.head)
    tail: Final = _method(Client.tail)
    lines: Final = _method(Client.lines)
    grep: Final = _method(Client.grep)
    summary: Final = _method(Client.summary)

    live: Final = _lasting(Client.live, _live)
    live_status: Final = _method(Client.live_status)
    follow: Final = _lasting(Client.follow, Followed)
    wait: Final = _method(Client.wait)
    timeline: Final = _method(Client.timeline)

    observe: Final = _method(Client.observe)
    usage: Final = _method(Client.usage)
    stats: Final = _method(Client.stats)
    fleet_stats: Final = _method(Client.fleet_stats)
    experiments: Final = _method(Client.experiments)
    sweep: Final = _method(Client.sweep)
    page_link: Final = _method(Client.page_link)
    healthy: Final = _method(Client.healthy)
    ready: Final = _method(Client.ready)


def running(client: SyncClient) -> tuple[Calls, Client]:
    """Return the asynchronous client, for code inside the loop thread, and where to begin its calls.

    Raises `ClientClosed`, and `RuntimeError` if no thread can be started.
    """
    return client._running()  # noqa: SLF001  (this module's own)


def synchronous_like(client: Client | SyncClient) -> SyncClient:
    """Return a client for the loop thread with the settings of one that is bound to its user's loop."""
    return SyncClient(client.address.url, client.address.key, **client.settings)


def background_client(address: Address, seconds: float | None = None) -> SyncClient:
    """Return a client for background work.

    It sends each request once, and waits at most `seconds` if given.
    """
    return SyncClient(
        address.url,
        address.key,
        session="",
        timeout=address.timeout if seconds is None else seconds,
        connect_timeout=address.connect_timeout if seconds is None else seconds,
        retries=0,
    )


def _end(calls: Calls, client: Client) -> None:
    calls.close(client.aclose)


_clients: weakref.WeakSet[SyncClient] = weakref.WeakSet()
_abandoned: list[object] = []
"""Clients that a forked child inherited and must not close: closing would disturb the parent's event loop."""


def _after_fork() -> None:
    for client in list(_clients):
        client._reset()  # noqa: SLF001  (this module's own)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
