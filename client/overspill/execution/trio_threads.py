"""Threads for code that runs under trio, also as a back end of anyio. Trio itself is never imported here."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_trio() -> bool:
    """Return whether the caller runs under trio."""
    trio: Any = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


async def run_in_trio_thread(work: Callable[..., T], *args: object) -> T:
    """Do `work(*args)` in a thread. A cancelled caller leaves at once; the work itself runs to its end."""
    trio: Any = sys.modules["trio"]
    unlimited = trio.CapacityLimiter(math.inf)  # trio's own may be full of the agent's tools
    result: T = await trio.to_thread.run_sync(work, *args, abandon_on_cancel=True, limiter=unlimited)
    return result
