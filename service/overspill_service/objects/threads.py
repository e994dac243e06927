"""The threads of one adapter for blocking calls, with a deadline on every wait."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from overspill_service.resources.threads import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    def __init__(self, name: str, count: int, deadline: float) -> None:
        """`deadline` in seconds includes the wait for a free thread."""
        self._pool = Pool(count, name)
        self.deadline = deadline

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread. Raises what it raises, and `TimeoutError` at the deadline.

        The thread goes on after the deadline, so late work must do no harm.
        """
        async with asyncio.timeout(self.deadline):
            return await self._pool.start(partial(work, *args, **kwargs))

    def close(self) -> None:
        self._pool.close()
