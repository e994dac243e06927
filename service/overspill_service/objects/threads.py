"""Blocking calls of one adapter: a few threads of its own, and a deadline on every wait for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from overspill_service.resources.threads import started_pool

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    def __init__(self, name: str, count: int, deadline: float) -> None:
        """`deadline` in seconds covers the wait for a free thread as well."""
        self._pool = started_pool(count, name)
        self.deadline = deadline

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns or raises; `TimeoutError` at the deadline.

        The thread goes on after that: work must be harmless when nobody waits for it any more.
        """
        future = self._pool.submit(work, *args, **kwargs)
        async with asyncio.timeout(self.deadline):
            return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
