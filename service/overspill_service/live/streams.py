"""Streams live captures to their followers: in one process, all followers of a capture share one stream.

A stream watches the catalog's news. It encodes each append once, and keeps it for a while for followers that
are a little behind. A follower that is further behind reads the capture.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from overspill import wire

from overspill_service.archive import moved
from overspill_service.archive.growing import as_stored
from overspill_service.catalog.live import LOOK_AGAIN
from overspill_service.catalog.records import Entry
from overspill_service.errors import ServiceError
from overspill_service.live import events
from overspill_service.live.kept_events import KeptEvents
from overspill_service.live.positions import bytes_between
from overspill_service.store_format.frames import CUT_BYTES
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.live.events import Event
    from overspill_service.live.views import LiveViews


log = logging.getLogger(__name__)


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
        """One for each follower that waits for news."""
        self._look_due = asyncio.Event()
        self.users = 0

    @property
    def seen(self) -> int:
        """The number of accepted bytes, as far as the news tell."""
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
                except ServiceError:
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
        """Return the kept event that begins there."""
        return self._events.get(offset)

    def boundary_after(self, offset: int) -> int:
        """Return the first offset behind `offset` at which an event begins, or the end."""
        return next((start for start in self._events if start > offset), self.end)

    async def _look(self) -> None:
        """Take what the news did not tell."""
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


async def _cut_character(archive: Archive, entry: Entry) -> bytes:
    """Return the beginning of a character at the end of what is accepted of a capture."""
    start = max(0, entry.size - CUT_BYTES)
    last = await bytes_between(await archive.reader(entry), start, entry.size)
    return last[events.whole_characters(last) :]


def _resolve(news: asyncio.Future[bool], is_new: bool) -> None:  # noqa: FBT001  (the result)
    if not news.done():
        news.set_result(is_new)


def _note_end(entry: Entry, task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        details = fields(tenant=entry.tenant, capture=entry.id)
        log.error("a stream failed, and its followers were disconnected", exc_info=error, extra=details)


class Streams:
    """The streams of one process."""

    def __init__(self, archive: Archive, views: LiveViews) -> None:
        self._archive, self._views = archive, views
        self._kept = KeptEvents()
        self._streams: dict[str, tuple[Stream, asyncio.Task[None]]] = {}
        self.is_stopping = False

    def stop(self) -> None:
        """End every follower and every wait: they go on at another replica."""
        self.is_stopping = True
        for stream, _ in self._streams.values():
            stream.tell()

    @asynccontextmanager
    async def of(self, entry: Entry) -> AsyncIterator[Stream]:
        """Use the stream of a live capture within the block. `entry` is as the catalog has it."""
        size, rest = 0, b""
        if entry.upload not in self._streams:
            size, rest = await self._accepted(entry)
        is_first = entry.upload not in self._streams
        if is_first:
            stream = Stream(self._archive, self._views, self._kept, entry, size, rest)
            task = asyncio.create_task(stream.run(), name=f"followers of {entry.id}")
            task.add_done_callback(partial(_note_end, entry))
            self._streams[entry.upload] = stream, task
        stream, task = self._streams[entry.upload]
        stream.users += 1
        try:
            if is_first:
                await self._archive.catalog.watch(entry.tenant, entry.id, stream.on_news)
                stream.on_news(LOOK_AGAIN, b"")
            yield stream
        finally:
            stream.users -= 1
            if not stream.users:
                del self._streams[entry.upload]
                stream.forget_events()
                task.cancel()
                # At once: whoever comes while the task ends begins another stream, and watches again.
                await self._archive.catalog.unwatch(entry.tenant, entry.id)
                await asyncio.gather(task, return_exceptions=True)

    async def _accepted(self, entry: Entry) -> tuple[int, bytes]:
        """Return how much is accepted, and the beginning of a character at its end."""
        async with self._views.held(entry) as view:
            return view.size, await _cut_character(self._archive, view)

    def follow(self, entry: Entry, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the capture from `offset` on as events, until it has ended. Without news, yield comments.

        `entry` is as the catalog has it.
        """
        return self._follow_live(entry, offset) if entry.is_live else self._replay(entry, offset)

    async def _replay(self, entry: Entry, offset: int) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._read(entry, offset, entry.size)) as found:
            async for event in found:
                yield event.encoded
        yield events.end(entry)

    async def _follow_live(self, entry: Entry, offset: int) -> AsyncGenerator[bytes, None]:
        async with self.of(entry) as stream:
            while True:
                kept = stream.event_at(offset)
                if self.is_stopping or stream.is_broken_off:
                    return  # who connects again learns why
                if kept is not None:
                    offset = kept.next_offset
                    yield kept.encoded
                elif offset < stream.end:
                    before, boundary = offset, stream.boundary_after(offset)
                    async with aclosing(self._behind(stream, offset, boundary)) as found:
                        async for event in found:
                            offset = event.next_offset
                            yield event.encoded
                    offset = boundary if offset == before else offset
                elif stream.ended is not None:
                    yield events.end(stream.ended)
                    return
                elif not await stream.changed(wire.KEEP_ALIVE_SECONDS):
                    yield events.KEEP_ALIVE

    async def _behind(self, stream: Stream, start: int, stop: int) -> AsyncGenerator[Event, None]:
        """Yield what the stream keeps no more: first what is stored, whose reader holds little memory."""
        entry = await self._archive.catalog.get(stream.entry.tenant, stream.entry.id)
        if not isinstance(entry, Entry):
            stream.is_broken_off = True
            return
        if entry.size - start > CUT_BYTES:
            async with aclosing(
                self._read(entry, start, min(stop, entry.size), is_cut=stop > entry.size)
            ) as found:
                async for event in found:
                    yield event
            return
        async with self._views.held(entry) as view, aclosing(self._read(view, start, stop)) as found:
            async for event in found:
                yield event

    async def _read(
        self, entry: Entry, start: int, stop: int, *, is_cut: bool = False
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of stored content. `is_cut`: a character may go on behind `stop`."""
        reader = await self._archive.reader(entry)
        rest, offset = b"", start
        async with aclosing(moved.content(self._archive, reader, start, stop)) as pieces:
            async for piece in pieces:
                content = rest + piece
                is_last = offset + len(content) >= stop and not is_cut
                whole = len(content) if is_last else events.whole_characters(content)
                content, rest = content[:whole], content[whole:]
                for part in events.pieces(content):
                    event = events.output(offset, part)
                    offset = event.next_offset
                    yield event
