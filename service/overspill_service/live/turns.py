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

TURN_SECONDS: Final = 5.0
"""How long an append waits for another one. Then it goes on, and is told the right offset."""


class Turn:
    """One append's place in the line, at the offset where it begins."""

    def __init__(self, offset: int, before: Turn | None) -> None:
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
            async with asyncio.timeout(TURN_SECONDS):
                if before.before is not None:
                    await before.before.over()
                await before.body()

    async def until_alone(self) -> None:
        """Wait until the append before is stored, or has failed."""
        if self.before is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_SECONDS):
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


class Turns:
    """The line of each capture, by its tenant and id."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Turn] = {}

    @contextmanager
    def take(self, name: tuple[str, str], offset: int) -> Iterator[Turn]:
        """Give an append its turn. It waits for none that does not begin before it: it repeats that one."""
        last = self._last.get(name)
        turn = self._last[name] = Turn(offset, last if last is not None and last.offset < offset else None)
        try:
            yield turn
        finally:
            turn.end()
            if self._last.get(name) is turn:
                del self._last[name]
