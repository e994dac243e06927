"""How a spill reaches the service, with and without an event loop: within its deadline, and never raising.

Whatever goes wrong becomes a reason that the notice can state.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill.client import Client
from overspill.errors import OverspillError, ProblemError
from overspill.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spill import Spill
    from overspill.wire import Entry

T = TypeVar("T")

NO_CLIENT: Final = "no Overspill service is configured"


class Storage:
    """Takes either client. What that cannot do is done in a thread, which nobody waits for too long."""

    def __init__(self, client: Client | SyncClient | None) -> None:
        self._client = client
        self._sync = client if isinstance(client, SyncClient) else None

    @property
    def session(self) -> str:
        return "" if self._client is None else self._client.session

    @property
    def can_keep(self) -> bool:
        """Whether there is any place at all to store an output."""
        return self._client is not None

    async def put(self, spill: Spill) -> Entry | str:
        """The capture's entry, or why it is not stored."""
        if self._client is None:
            return NO_CLIENT
        try:
            async with asyncio.timeout(spill.deadline):
                if isinstance(self._client, Client):
                    return await self._client.put(spill.data, **_metadata(spill))
                return await asyncio.wrap_future(self._in_thread(self._client, spill))
        except TimeoutError:
            return _too_slow(spill)
        except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
            return reason(error)

    def put_sync(self, spill: Spill) -> Entry | str:
        """As `put`, for code without an event loop."""
        if self._client is None:
            return NO_CLIENT
        try:
            return self._in_thread(self._synchronous(self._client), spill).result(spill.deadline)
        except TimeoutError:
            return _too_slow(spill)
        except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
            return reason(error)

    def _synchronous(self, client: Client | SyncClient) -> SyncClient:
        if self._sync is None:
            address = client.address
            self._sync = SyncClient(
                address.url,
                address.key,
                session=client.session,
                timeout=address.timeout,
                connect_timeout=address.connect_timeout,
                retries=address.retries,
            )
        return self._sync

    def _in_thread(self, client: SyncClient, spill: Spill) -> Future[Entry]:
        return _spawned(lambda: client.put(spill.data, **_metadata(spill)))


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


def _too_slow(spill: Spill) -> str:
    return f"the service did not store it within {round(spill.deadline, 1):g} s"


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


def _spawned(work: Callable[[], T]) -> Future[T]:
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
