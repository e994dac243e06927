"""One live capture on its way to all of its followers in one process.

A stream watches the catalog's news. It encodes each append once, and keeps it for a while for followers that
are a little behind.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from overspill import wire

from overspill_service.archive.growing import as_stored
from overspill_service.catalog.live import LOOK_AGAIN
from overspill_service.catalog.records import Entry
from overspill_service.errors import CaptureDamaged, ObjectMissing, ServiceError
from overspill_service.live import events

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.live.events import Event
    from overspill_service.live.kept_events import KeptEvents
    from overspill_service.live.views import LiveViews


class Stream:
    """One live capture. `end` is the offset behind the last event; `ended` has its entry once it is whole."""

    def __init__(
        self, archive: Archive, views: LiveViews, kept: KeptEvents, entry: Entry, size: int, rest: bytes
    ) -> None:
        """`size`: of what is accepted. `rest`: the beginning of a character at its end."""
        self._archive, self._views, self._kept, self.entry = archive, views, kept, entry
        self.end = size - len(rest)
        self.ended: Entry | None = None
        self.is_broken_off = False
        """Whether nothing more comes: the capture was removed, or it cannot be read."""
        self._events: dict[int, Event] = {}
        """By the offset at which each begins, in their order."""
        self._rest = rest
        """The beginning of a character whose other bytes have not come."""
        self._waiting: set[asyncio.Future[bool]] = set()
        """One event for each follower that waits for news."""
        self._look_due = asyncio.Event()
        self.users = 0

    @property
    def seen(self) -> int:
        """The number of accepted bytes, according to the news."""
        return self.end + len(self._rest)

    def on_news(self, offset: int, data: bytes) -> None:
        """Take an append, or note that the capture has to be looked at."""
        have = self.seen
        if data and offset == have:
            self._take(data)
        elif offset == LOOK_AGAIN or offset + max(len(data), 1) > have:
            self._look_due.set()

    async def run(self) -> None:
        """Look at the capture when that is due, until it has ended. At the end, wake its followers."""
        try:
            while self.ended is None and not self.is_broken_off:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wire.KEEP_ALIVE_SECONDS):
                        await self._look_due.wait()
                self._look_due.clear()
                try:
                    await self._look()
                except ServiceError as error:
                    if isinstance(error, CaptureDamaged) and not isinstance(error, ObjectMissing):
                        raise  # it stays damaged: who connects again is told
                    await asyncio.sleep(1)
                    self._look_due.set()
        finally:
            self.is_broken_off = self.ended is None
            self.tell()

    def forget_events(self) -> None:
        self._kept.forget(self.entry.tenant, self._events)

    async def changed(self, seconds: float) -> bool:
        """Wait for news for at most `seconds`. Return whether there is any."""
        loop = asyncio.get_running_loop()
        news: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(news)
        # Followers do this for each event: `asyncio.timeout` takes several times as long.
        timer = loop.call_later(seconds, _resolve, news, False)
        try:
            return await news
        finally:
            timer.cancel()
            self._waiting.discard(news)

    def event_at(self, offset: int) -> Event | None:
        """Return the kept event that begins at the offset."""
        return self._events.get(offset)

    def boundary_after(self, offset: int) -> int:
        """Return the first offset behind `offset` at which an event begins, or the end."""
        return next((start for start in self._events if start > offset), self.end)

    async def _look(self) -> None:
        """Read the bytes that the news did not bring."""
        entry = await self._archive.catalog.get(self.entry.tenant, self.entry.id)
        if not isinstance(entry, Entry):
            self.is_broken_off = True
            return
        async with self._views.held(entry) as view:
            await self._catch_up(view)
            self.entry, size = as_stored(view), view.size
        if not self.entry.is_live and self.seen >= size:
            self._finish(self.entry)
        elif not self.entry.is_live:
            self._look_due.set()

    async def _catch_up(self, view: Entry) -> None:
        have = self.seen
        if view.size > have:
            reader = await self._archive.reader(view)
            async with aclosing(reader.content(have, view.size)) as pieces:
                async for piece in pieces:
                    if self.seen == have:  # no news came meanwhile
                        self._take(piece)
                    have += len(piece)

    def _take(self, data: bytes) -> None:
        content = self._rest + data
        whole = events.whole_characters(content)
        content, self._rest = content[:whole], content[whole:]
        for piece in events.pieces(content):
            self._add(piece)
        self.tell()

    def _add(self, content: bytes) -> None:
        event = events.output(self.end, content)
        self.end = event.next_offset
        if self.users:  # else nobody is behind, and nobody would forget it
            self._kept.add(self.entry.tenant, self._events, event)

    def _finish(self, entry: Entry) -> None:
        if self._rest:
            rest, self._rest = self._rest, b""
            self._add(rest)
        self.ended = entry

    def tell(self) -> None:
        """Wake all who wait for news."""
        waiting, self._waiting = self._waiting, set()
        for news in waiting:
            _resolve(news, True)


def _resolve(news: asyncio.Future[bool], is_new: bool) -> None:  # noqa: FBT001  (the result)
    if not news.done():
        news.set_result(is_new)
