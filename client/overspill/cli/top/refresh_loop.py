"""Draws the table again and again, until a key or a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from overspill.cli.printable import printable_line
from overspill.errors.verdicts import FAILING
from overspill.execution.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.cli.top.screen import Screen
    from overspill.cli.top.view import View
    from overspill.wire import Stats

BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK: Final = 1.0
"""Seconds after which the screen is drawn again at the latest: ages of what is stale grow."""


class RefreshLoop:
    """One run of the table. `ask` returns the statistics, and raises `OverspillError`."""

    def __init__(
        self, ask: Callable[[], Awaitable[Stats]], view: View, screen: Screen, interval: int
    ) -> None:
        self._ask, self._view, self._screen, self._interval = ask, view, screen, interval
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._is_changed = asyncio.Event()
        self._is_wanted = asyncio.Event()
        self._failure = ""
        self._answered = self._next = 0.0
        self._stats: Stats

    async def run(self) -> int:
        """Draw until a key or a signal ends it. Return the number of the signal, 0 for the key.

        Raises `OverspillError` if the first answer fails, or a later one in a way that another try does not
        mend. Raises `OSError` if the terminal cannot be written to.
        """
        await self._refresh()
        self._handle_signals()
        with self._screen:
            if self._screen.keyboard is not None:
                self._loop.add_reader(self._screen.keyboard, self._press)
            jobs = [asyncio.create_task(self._refresh_always()), asyncio.create_task(self._draw_always())]
            waited: list[asyncio.Future[Any]] = [*jobs, self._ended]
            done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)  # nothing is drawn once the terminal is given back
            for each in done:
                each.result()  # a job ends only by what it raises
            return self._ended.result()

    async def _refresh(self) -> None:
        self._stats = await self._ask()
        self._failure, self._answered = "", self._loop.time()

    async def _refresh_always(self) -> None:
        failures = 0
        while True:
            pause = BACKOFF.pause(failures - 1) if failures else self._interval
            self._next = self._loop.time() + pause
            await _wait(self._is_wanted, pause)
            try:
                await self._refresh()
                failures = 0
            except FAILING as error:  # the last table stays, and the service is asked again
                self._failure = str(error)
                failures += 1
            self._is_changed.set()

    async def _draw_always(self) -> None:
        while True:
            width, height = self._screen.size()
            self._screen.draw(self._view.lines(self._stats, self._message(), width, height))
            await _wait(self._is_changed, _TICK)

    def _message(self) -> str:
        """Return since when the table is stale and why, or nothing."""
        if not self._failure:
            return ""
        now = self._loop.time()
        left = max(0, round(self._next - now))
        again = f"next try in {left} s" if left else "trying again"
        since = f"{self._stats.until.astimezone(UTC):%H:%M:%S} UTC ({now - self._answered:.0f} s)"
        return f"stale since {since}, {again}: {printable_line(self._failure)}"

    def _press(self) -> None:
        try:
            keys = list(self._screen.keys())
        except OSError:  # the terminal is gone
            self._end(signal.SIGHUP)
            return
        for key in keys:
            self._view.press(key)
        if "q" in keys:
            self._end(0)
        if " " in keys:
            self._is_wanted.set()
        self._is_changed.set()

    def _handle_signals(self) -> None:
        for number in _ENDING:
            self._loop.add_signal_handler(number, self._end, number)
        self._loop.add_signal_handler(signal.SIGWINCH, self._is_changed.set)
        self._loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    def _end(self, number: int) -> None:
        if not self._ended.done():
            self._ended.set_result(number)

    def _suspend(self) -> None:
        """Give the terminal back, stop, and take it again when the shell continues this process."""
        self._screen.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._screen.open()
        self._is_changed.set()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, and clear it, or until the time has passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):  # unlike wait_for, it loses no cancellation in Python 3.11
            await event.wait()
    event.clear()
