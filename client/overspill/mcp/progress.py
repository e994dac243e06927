"""Reports the progress of a tool's call: its time, and the growth of the capture that it waits for."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill.agent_tools import inspect_output
from overspill.agent_tools.error_answers import InvalidArguments
from overspill.agent_tools.inspect_request import InspectRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from overspill.mcp.growth import Watches

    Report = Callable[[float, str], Awaitable[None]]
    """Sends one report: seconds, which only grow, and a text."""

T = TypeVar("T")

HEARTBEAT: Final = 1.0
"""Seconds between two reports."""


async def reporting(
    work: Coroutine[Any, Any, T], report: Report | None, watches: Watches, waited_for: str | None = None
) -> T:
    """Return the result of `work`. Report its progress until then, unless `report` is None.

    `waited_for` is the capture that the work waits for, if it is a wait. Cancelling this cancels the work.
    """
    if report is None:
        return await work
    reporter = asyncio.create_task(_report(report, watches, waited_for))
    try:
        return await work
    finally:
        reporter.cancel()
        await asyncio.gather(reporter, return_exceptions=True)


async def _report(report: Report, watches: Watches, waited_for: str | None) -> None:
    begun = asyncio.get_running_loop().time()
    async with AsyncExitStack() as stack:
        watch = None if waited_for is None else await stack.enter_async_context(watches.of(waited_for))
        while True:
            await asyncio.sleep(HEARTBEAT)
            seconds = asyncio.get_running_loop().time() - begun
            message = f"{'reading' if watch is None else 'waiting'} for {seconds:.0f} s"
            if watch is not None and watch.growth is not None and "error" not in watch.growth.answer:
                message += f": {watch.growth}"
            await report(seconds, message)


def waited_for(tool: str, arguments: Any) -> str | None:
    """Return the capture that a call of a reading tool waits for, None if it does not wait."""
    if tool != inspect_output.NAME or not isinstance(arguments, dict):
        return None
    try:
        request = InspectRequest.of(arguments)
    except InvalidArguments:
        return None
    return request.capture if request.mode == "wait" else None
