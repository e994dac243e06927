"""The event loop's time, shared among tenants: requests that keep it busy for long wait.

A tenant may have a fifth of the time. The time of a request is known only at its end. So each request is
charged a little at its beginning, and the difference at its end.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from overspill_service.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

SHARE: Final = 0.2
"""The part of the time that one tenant may have."""
BURST_SECONDS: Final = 0.02
ADVANCE_SECONDS: Final = 0.005
"""The charge of a request at its beginning. So at most four of a tenant begin at once."""
MIN_PAUSE_SECONDS: Final = 0.001
QUEUE_SECONDS: Final = 5.0


class LoopTime:
    """The accounts of one process's tenants. Belongs to one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._accounts: WeakValueDictionary[str, Account] = WeakValueDictionary()

    @asynccontextmanager
    async def account(self, tenant: str) -> AsyncIterator[Account]:
        """Wait until the tenant has no debt. The block charges the account. Raises `TooManyRequests`."""
        account = self._accounts.get(tenant)
        if account is None:
            account = self._accounts[tenant] = Account(self._clock, self._sleep)
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await account.admit()
        except TimeoutError as error:
            raise TooManyRequests("long listings and reports", 1) from error
        try:
            yield account
        finally:
            account.charge(-ADVANCE_SECONDS)
            account.linger()


class Account:
    """The time of the event loop that one tenant has used."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._clock, self._sleep, self._at = clock, sleep, clock()
        self._debt = 0.0
        self._lock = asyncio.Lock()

    def charge(self, seconds: float) -> None:
        self._debt += seconds

    async def admit(self) -> None:
        """Wait until the tenant has paid for what it has used, first come, first served."""
        async with self._lock:
            wait = self._wait()
            while wait > 0:
                await self._sleep(max(wait, MIN_PAUSE_SECONDS))
                wait = self._wait()
            self.charge(ADVANCE_SECONDS)

    def linger(self) -> None:
        """Keep the account until the debt is paid."""
        asyncio.get_running_loop().call_later(max(0.0, self._wait()), self._wait)

    def _wait(self) -> float:
        """Return the seconds until another request may begin."""
        now = self._clock()
        self._debt, self._at = max(0.0, self._debt - SHARE * (now - self._at)), now
        return (self._debt + ADVANCE_SECONDS - BURST_SECONDS) / SHARE
