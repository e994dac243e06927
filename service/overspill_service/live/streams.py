"""Streams live captures to their followers: in one process, all followers of a capture share one stream.

A follower that is further behind than its stream keeps events reads the capture.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from overspill import wire

from overspill_service.archive import moved
from overspill_service.catalog.live import LOOK_AGAIN
from overspill_service.catalog.records import Entry
from overspill_service.live import events
from overspill_service.live.kept_events import KeptEvents
from overspill_service.live.positions import bytes_between
from overspill_service.live.stream import Stream
from overspill_service.store_format.frames import CUT_BYTES
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from overspill_service.archive.archive import Archive
    from overspill_service.live.events import Event
    from overspill_service.live.views import LiveViews

log = logging.getLogger(__name__)


async def _cut_character(archive: Archive, entry: Entry) -> bytes:
    """Return the beginning of a character at the end of what is accepted of a capture."""
    start = max(0, entry.size - CUT_BYTES)
    last = await bytes_between(await archive.reader(entry), start, entry.size)
    return last[events.whole_characters(last) :]


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
        """Return the number of accepted bytes, and the beginning of a character at their end."""
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
                kept_event = stream.event_at(offset)
                if self.is_stopping or stream.is_broken_off:
                    return  # who connects again learns why
                if kept_event is not None:
                    offset = kept_event.next_offset
                    yield kept_event.encoded
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
        """Yield content that the stream no longer keeps. Stored bytes come first: they need little memory."""
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
