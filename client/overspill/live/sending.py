"""The task that sends a live capture. It belongs to the event loop in which it began."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overspill.live.producer import Producer

_ELSEWHERE: Final = "this live capture is in use by another event loop: use it there, or use SyncClient"
_ENDED: Final = (
    "the event loop of this live capture has ended: only complete() and abort() still send what is left"
)


class Sending:
    """Sends what `producer` has, once it has begun."""

    def __init__(self, producer: Producer, name: str) -> None:
        self._producer, self._name = producer, name
        self._task: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        """Whether it has begun, and was not closed."""
        return self._task is not None

    def begin(self) -> asyncio.Task[None]:
        """Begin, in the event loop that runs."""
        self._task = asyncio.create_task(self._producer.run(), name=self._name)
        return self._task

    def check_loop(self) -> None:
        """Raise `RuntimeError` if it goes on in another event loop than the one that runs."""
        loop = None if self._task is None else self._task.get_loop()
        if loop is not None and loop is not asyncio.get_running_loop() and not loop.is_closed():
            raise RuntimeError(_ELSEWHERE)

    def raise_failure(self) -> None:
        """Raise what ended it, also an unexpected error, as `MemoryError`; `RuntimeError` if its loop did."""
        if self._task is None or not self._task.done():
            return
        if self._task.cancelled():
            raise RuntimeError(_ENDED)
        self._task.result()

    async def finish(self) -> None:
        """Wait until all is sent. A loop that ends cancels the sending too: then it begins anew."""
        task = self._task
        if task is None:
            return
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            await asyncio.shield(self.begin())

    async def aclose(self) -> None:
        """End it, if it goes on."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
