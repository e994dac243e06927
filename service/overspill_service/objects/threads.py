"""The threads of one adapter for blocking calls, with a deadline on every wait.

Tenants share them fairly, so that nobody waits for the many calls of another one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from overspill_service.resources.fair_threads import FairThreads

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    def __init__(self, name: str, count: int, deadline: float) -> None:
        """`count`: the most threads of one tenant. `deadline` in seconds includes the wait for a free one."""
        self._threads = FairThreads(name, threads=count, gives_way=False, halves=False)
        self.deadline = deadline

    async def run(self, tenant: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread. Raises what it raises, and `TimeoutError` at the deadline.

        The thread goes on after the deadline, so late work must do no harm.
        """
        async with asyncio.timeout(self.deadline):
            return await self._threads.of(tenant).run(work, *args, **kwargs)

    def close(self) -> None:
        self._threads.close(waits=False)
