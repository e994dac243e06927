"""One run of `overspill top`: printed once, as JSON, or drawn on a terminal until the user ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from overspill.cli.color import Paint
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.failures import message_of
from overspill.cli.top import screen
from overspill.cli.top.refresh_loop import RefreshLoop
from overspill.cli.top.view import View
from overspill.errors import Forbidden, NoRoute
from overspill.wire import STEPS

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.wire import Stats

_LIMITS: Final = {"timeout": 10.0, "connect_timeout": 5.0, "retries": 0}
"""The table tries again itself, and says so."""
_FLEET_HINT: Final = "a key with the scope fleet shows all tenants with --fleet"
_TENANT_HINT: Final = "without --fleet, a key with the scope read shows its own tenant"
_ASKS_PER_STEP: Final = 12
_LONGEST_INTERVAL: Final = 60
"""Seconds."""


def run(
    invocation: Invocation, *, window: int, interval: int | None, sort: str, is_fleet: bool, is_once: bool
) -> None:
    """Show what happened in the last `window` seconds, again every `interval` seconds.

    Long windows are many buckets, so the service is asked about them less often by default.

    Raises `OverspillError`, `CommandFailure` and `OSError`.
    """
    view = View(Paint(invocation.color), by_tenant=is_fleet, sort=sort)
    try:
        if invocation.json:
            invocation.answer(_ask_once(invocation, window, is_fleet=is_fleet))
        elif is_once or not screen.is_possible():
            view.print(_ask_once(invocation, window, is_fleet=is_fleet))
        else:
            pause = interval or min(_LONGEST_INTERVAL, _step(window) // _ASKS_PER_STEP)
            _end_with(asyncio.run(_refreshed(invocation, view, window, pause)))
    except Forbidden as error:
        hint = _TENANT_HINT if is_fleet else _FLEET_HINT
        raise CommandFailure(f"{message_of(error)}; {hint}", ExitCode.REFUSED) from None
    except NoRoute:
        raise CommandFailure(
            "this service keeps no statistics: it is older than this command, or not Overspill",
            ExitCode.ABSENT,
        ) from None


def _ask_once(invocation: Invocation, window: int, *, is_fleet: bool) -> Stats:
    with invocation.client() as client:
        stats: Stats = (client.fleet_stats if is_fleet else client.stats)(**_span(window))
        return stats


async def _refreshed(invocation: Invocation, view: View, window: int, interval: int) -> int:
    async with invocation.async_client(**_LIMITS) as client:
        method = client.fleet_stats if view.by_tenant else client.stats
        return await RefreshLoop(lambda: method(**_span(window)), view, screen.Screen(), interval).run()


def _span(window: int) -> dict[str, Any]:
    """Return the query for the last `window` seconds, in whole buckets and the one that runs."""
    window = min(window, max(STEPS.values()))
    step = _step(window)
    since = int(time.time() - window) // step * step
    return {"since": datetime.fromtimestamp(since, UTC), "step": step, "total": True}


def _step(window: int) -> int:
    """Return the length, in seconds, of the shortest buckets that are kept for the window."""
    return next((step for step, window_kept in STEPS.items() if window <= window_kept), max(STEPS))


def _end_with(number: int) -> None:
    """End as the signal does that ended the table. Without one, return."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
