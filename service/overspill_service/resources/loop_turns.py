"""Turns on the event loop: when many requests come at once, tenants begin theirs one after the other.

In each iteration of the loop one request begins. If several wait, each tenant's turn comes in its order,
however many requests the others have. A request that is alone begins at once.
"""

from __future__ import annotations

import asyncio
from collections import deque


class LoopTurns:
    """The turns of one process. Belongs to one event loop."""

    def __init__(self) -> None:
        self._is_taken = False
        """Whether a request has begun in this iteration."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By tenant, in the order of their next turns."""

    async def take(self, tenant: str) -> None:
        """Wait for a turn of the tenant."""
        if not self._is_taken:
            self._begin()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        await turn

    def _begin(self) -> None:
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Give the turn of a new iteration away."""
        self._is_taken = False
        while self._waiting and not self._is_taken:
            tenant = next(iter(self._waiting))
            queue = self._waiting.pop(tenant)
            turn = queue.popleft()
            if queue:
                self._waiting[tenant] = queue  # behind the others
            if not turn.done():  # its request was given up
                turn.set_result(None)
                self._begin()
