"""The appends of one capture that a process has at once: each waits for the one that came before it.

    one        ├── body ──┤├── stored ──┤
    the next               ├── body ──┤  ├── stored ──┤
    a third                             ├── body ──┤   ├── stored ──┤

So a producer may send an append before it has the answer to the last one. No more than two of a capture have
their bodies in memory.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_SECONDS: Final = 5.0
"""Seconds that an append waits for another. Then it goes on, and its answer has the right offset."""


class QueuedAppend:
    """One append in its queue, at the offset where it begins."""

    def __init__(self, offset: int, before: QueuedAppend | None) -> None:
        self.offset = offset
        self.before = before
        """The append that it waits for, if there is one."""
        self._has_body = asyncio.Event()
        self._is_over = asyncio.Event()

    async def until_body(self) -> None:
        """Wait until the body may be received."""
        before = self.before
        if before is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                if before.before is not None:
                    await before.before.over()
                await before.body()

    async def until_alone(self) -> None:
        """Wait until the append before is stored, or has failed."""
        if self.before is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await self.before.over()
            self.before = None

    async def body(self) -> None:
        """Wait until this append has its body, or has failed."""
        await self._has_body.wait()

    async def over(self) -> None:
        """Wait until this append is stored, or has failed."""
        await self._is_over.wait()

    def note_body(self) -> None:
        """Let the append behind receive its body, too."""
        self._has_body.set()

    def end(self) -> None:
        """Let the append behind be stored."""
        self.before = None
        self._has_body.set()
        self._is_over.set()


class AppendQueues:
    """The queue of each capture, by its tenant and id."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], QueuedAppend] = {}

    @contextmanager
    def join(self, name: tuple[str, str], offset: int) -> Iterator[QueuedAppend]:
        """Put an append at the end of its queue.

        If the last append does not begin earlier, this one is a repetition, and does not wait.
        """
        last = self._last.get(name)
        queued = self._last[name] = QueuedAppend(
            offset, last if last is not None and last.offset < offset else None
        )
        try:
            yield queued
        finally:
            queued.end()
            if self._last.get(name) is queued:
                del self._last[name]
