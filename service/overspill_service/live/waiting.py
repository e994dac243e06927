"""Waits for something in a live capture: a line that matches, enough new lines, the end, or a timeout."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from msgspec import UNSET
from overspill import wire
from overspill.reading import lines
from overspill.reading.grep import Search
from overspill.reading.scanning import Cursor
from overspill.reading.text import LONGEST_ESCAPE, decode, seam

from overspill_service.archive.growing import as_stored
from overspill_service.archive.inspection import extent_of, inspect, search
from overspill_service.errors import InvalidParameter
from overspill_service.live.positions import bytes_between, line_at, offset_of_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from overspill.reading.chunks import Caps, Extent
    from overspill.reading.patterns import Pattern

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry
    from overspill_service.live.stream import Stream
    from overspill_service.live.streams import Streams
    from overspill_service.resources.scans import Scan

PAUSE_SECONDS: Final = 0.05
"""Seconds for which a wait gathers new bytes before it looks again."""
MAX_MATCHES: Final = 10
CONTEXT_LINES: Final = 2

_ADVICE: Final = (
    "No new output for {:g} s. It goes on: wait once more with a longer timeout (up to {}) and a pattern of "
    "what you wait for, or do something else first. Asking again and again tells nothing more."
)
Reason = Literal["pattern", "lines", "ended", "timeout"]


class _Found(NamedTuple):
    reason: Reason
    matches: list[wire.Match]


class _Shown(NamedTuple):
    text: wire.Text
    skipped_lines: int


class Source(Protocol):
    """The capture on which a reader waits."""

    async def entry(self) -> Entry:
        """Return its present entry."""

    def release(self) -> bool:
        """Give back the memory of the last entry.

        Return whether it had any; then it must not be used again.
        """


class Wait:
    """One wait of one reader."""

    def __init__(
        self,
        archive: Archive,
        query: wire.WaitQuery,
        caps: Caps,
        *,
        source: Source,
        scan: Callable[[], AbstractAsyncContextManager[Scan]],
        pattern: Pattern | None,
        scan_seconds: float,
    ) -> None:
        """`scan_seconds`: how long existing lines may be searched, even if the wait is shorter."""
        self._archive, self._query, self._caps, self._pattern = archive, query, caps, pattern
        self._source, self._scan, self._scan_seconds = source, scan, scan_seconds
        self._line = 0
        """The first line that was not searched yet; 0 before the first look."""
        self._first_line, self._skipped_bytes = 1, 0
        self._seen = 0
        """The bytes of the capture that were already seen."""

    async def run(self, streams: Streams) -> tuple[wire.Waited, Entry]:
        """Wait until what the query asks for has come, or time is over. Return the answer and the entry."""
        until = time.monotonic() + self._query.timeout
        entry = await self._source.entry()
        await self._begin(entry)
        found = await self._look(entry, until)
        if found is not None:
            return await self._answer(entry, found), entry
        async with streams.of(as_stored(entry)) as stream:
            while found is None:
                size, kept = entry.size, None if self._source.release() else entry
                entry = as_stored(entry)
                is_new = await self._news(streams, stream, size, until)
                entry = await self._source.entry() if is_new or kept is None else kept
                found = await self._look(entry, until) if is_new else None
                if found is None and (stream.is_broken_off or not is_new):  # no news will come
                    found = _Found("timeout", [])
            return await self._answer(entry, found), entry

    async def _news(self, streams: Streams, stream: Stream, size: int, until: float) -> bool:
        """Wait until there are more than `size` bytes, or no more will come. Return False on timeout."""
        while (left := until - time.monotonic()) > 0 and not streams.is_stopping:
            if stream.seen > size or stream.ended is not None or stream.is_broken_off:
                await asyncio.sleep(min(PAUSE_SECONDS, left))
                return True
            await stream.changed(left)
        return False

    async def _begin(self, entry: Entry) -> None:
        """Find the line of the reader's cursor."""
        if self._query.cursor > entry.size:
            raise InvalidParameter(
                f"cursor={self._query.cursor} is beyond the {entry.size} bytes that there are"
            )
        reader = await self._archive.reader(entry)
        self._first_line, self._skipped_bytes = await line_at(reader, self._query.cursor)
        self._line = self._first_line
        is_cut = self._query.cursor == entry.size - len(await self._unfinished(entry))
        self._seen = entry.size if is_cut else self._query.cursor

    async def _look(self, entry: Entry, until: float) -> _Found | None:
        """Return the answer if what the query asks for has come, else None."""
        if self._pattern is not None:
            matches = await self._search(entry, self._pattern, until)
            if matches:
                return _Found("pattern", matches)
        if self._query.lines is not None and entry.newlines - self._first_line + 1 >= self._query.lines:
            return _Found("lines", [])
        return None if entry.is_live else _Found("ended", [])

    async def _search(self, entry: Entry, pattern: Pattern, until: float) -> list[wire.Match]:
        """Search the new lines. A last line without an end is searched again later.

        Existing lines are searched even if there is no time to wait.
        """
        until = max(until, time.monotonic() + self._scan_seconds)
        while entry.size > self._seen and self._line <= entry.lines:
            answer = await self._search_once(entry, pattern, until)
            if answer.next is None:
                self._line = entry.newlines + 1
            else:
                self._line = max(self._line, answer.end_line + 1)
            if answer.matches is not UNSET and answer.matches:
                return answer.matches
            if answer.next is None or time.monotonic() >= until:
                break
        return []

    async def _search_once(self, entry: Entry, pattern: Pattern, until: float) -> wire.Text:
        query = wire.GrepQuery(
            pattern=self._query.pattern or "",
            fixed=self._query.fixed,
            ignore_case=self._query.ignore_case,
            ansi=self._query.ansi,
            max_matches=MAX_MATCHES,
            context=CONTEXT_LINES,
            cursor=Cursor(self._line).text(backwards=False),
        )
        async with self._scan() as scan:

            def is_late() -> bool:
                return scan.is_over or time.monotonic() > until

            def begin(extent: Extent) -> Search:
                return Search(query, extent, caps=self._caps, expired=is_late, pattern=pattern)

            return await search(self._archive, entry, begin, scan)

    async def _answer(self, entry: Entry, found: _Found) -> wire.Waited:
        """Return the new lines: all, from the first match on, or the last ones, as many as fit."""
        shown, skipped_lines = await self._shown(entry, found.matches)
        content, cursor = shown.content, entry.size
        if shown.end_line < entry.lines:
            cursor = await offset_of_line(await self._archive.reader(entry), shown.end_line + 1)
        elif unfinished := await self._unfinished(entry):
            columns = extent_of(entry).columns
            rest = decode(unfinished, ansi=self._query.ansi, columns=columns).text.rpartition("\n")[2]
            content, cursor = content.removesuffix(rest), cursor - len(unfinished)
        return wire.Waited(
            reason=found.reason,
            state=entry.state,
            content=content,
            start_line=shown.start_line,
            end_line=shown.end_line,
            total_lines=entry.lines,
            total_bytes=entry.size,
            matches=found.matches,
            skipped_lines=skipped_lines,
            cursor=max(cursor, self._query.cursor),
            approx_tokens=wire.approx_tokens(len(content.encode())),
            advice=self._advice(found, content),
            status=entry.status,
            exit_code=entry.exit_code,
            gap=entry.gap,
        )

    async def _shown(self, entry: Entry, matches: list[wire.Match]) -> _Shown:
        first = self._first_line
        if matches:
            match = matches[0].line_number
            start = max(first, match - CONTEXT_LINES)
            shown = await self._read(entry, start)
            if shown.end_line < match:  # the lines before it leave no room for it
                start, shown = match, await self._read(entry, match)
            return _Shown(shown, start - first)
        shown = await self._read(entry, first)
        if not shown.truncated:
            return _Shown(shown, 0)
        shown = await self._tail(entry)
        return _Shown(shown, shown.place.get("end", first - 1) - first + 1)

    async def _unfinished(self, entry: Entry) -> bytes:
        """Return the beginning of a character or an escape sequence at the end of a growing capture."""
        if not entry.is_live or entry.lines == entry.newlines:
            return b""
        start = max(0, entry.size - LONGEST_ESCAPE)
        end = await bytes_between(await self._archive.reader(entry), start, entry.size)
        return end[seam(end, len(end)) :]

    async def _read(self, entry: Entry, start: int) -> wire.Text:
        offset = self._skipped_bytes if start == self._first_line else 0

        def begin(extent: Extent) -> lines.LineRead:
            is_behind = start > extent.lines or self._query.cursor >= extent.size
            first = extent.lines + 1 if is_behind else start
            within = 0 if is_behind else offset
            return lines.between(first, None, extent, offset=within, caps=self._caps, ansi=self._query.ansi)

        return await inspect(self._archive, entry, begin)

    async def _tail(self, entry: Entry) -> wire.Text:
        count = max(1, entry.lines - self._first_line + 1)

        def begin(extent: Extent) -> lines.TailRead:
            return lines.tail(count, extent, caps=self._caps, ansi=self._query.ansi)

        return await inspect(self._archive, entry, begin)

    def _advice(self, found: _Found, content: str) -> str:
        """Return advice for a reader who would only ask again; empty if something has come."""
        if found.reason == "timeout" and not content:
            return _ADVICE.format(self._query.timeout, wire.MAX_WAIT_SECONDS)
        return ""
