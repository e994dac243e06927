"""Bounded reads of text: head, tail, lines, grep and summary."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace
from overspill import wire
from overspill.reading import lines
from overspill.reading.grep import Search
from overspill.reading.scanning import Cursor
from overspill.reading.summary import Summarizer
from overspill.wire import Path

from overspill_service.archive.inspection import compiled, inspect, search
from overspill_service.archive.number_mask import mask_numbers
from overspill_service.errors import InvalidParameter
from overspill_service.live.since import first_line_since
from overspill_service.web.context import with_state
from overspill_service.web.instants import seconds_of
from overspill_service.web.registry import capture_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web
    from overspill.reading.chunks import Caps, Extent

    from overspill_service.catalog.records import Entry
    from overspill_service.resources.scans import Scan
    from overspill_service.web.context import RequestContext

Q = TypeVar("Q", bound=wire.ReadQuery)


async def head(context: RequestContext[wire.HeadQuery]) -> web.Response:
    entry = await context.entry()
    first = await _first_line(context, entry)

    def begin(extent: Extent) -> lines.LineRead:
        query = context.query
        return lines.head(query.lines, extent, first=first, caps=_caps(context), ansi=query.ansi)

    return context.text(entry, await inspect(context.service.archive, entry, begin))


async def tail(context: RequestContext[wire.TailQuery]) -> web.Response:
    entry = await context.entry()
    count = min(context.query.lines, entry.lines - await _first_line(context, entry) + 1)

    def begin(extent: Extent) -> lines.TailRead | lines.LineRead:
        caps, ansi = _caps(context), context.query.ansi
        if count < 1 <= extent.lines:
            return _nothing("tail", extent, caps)
        return lines.tail(max(count, 1), extent, caps=caps, ansi=ansi)

    return context.text(entry, await inspect(context.service.archive, entry, begin))


async def between(context: RequestContext[wire.LinesQuery]) -> web.Response:
    query = context.query
    entry = await context.entry()
    first = await _first_line(context, entry)
    start, offset = (query.start, query.offset) if first <= query.start else (first, 0)
    is_too_old = query.end is not None and query.start <= query.end < start

    def begin(extent: Extent) -> lines.LineRead:
        caps = _caps(context)
        if is_too_old:
            return _nothing("lines", extent, caps)
        return lines.between(start, query.end, extent, offset=offset, caps=caps, ansi=query.ansi)

    return context.text(entry, await inspect(context.service.archive, entry, begin))


def _nothing(mode: str, extent: Extent, caps: Caps) -> lines.LineRead:
    """Return a read without lines: none came since the given instant."""
    return lines.LineRead(mode, extent.lines + 1, None, 0, extent, caps=caps, ansi=False)


async def grep(context: RequestContext[wire.GrepQuery]) -> web.Response:
    entry = await context.entry()
    query, first = context.query, await _first_line(context, entry)
    if query.since is not None and query.from_end:
        raise InvalidParameter("since goes with a search from the start: leave from_end out")
    if 1 < first <= entry.lines and query.cursor is None:
        query = replace(query, cursor=Cursor(first).text(backwards=False))
    async with context.scan() as scan:
        pattern = await compiled(query, scan)
        is_late = _deadline(context, scan)

        def begin(extent: Extent) -> Search:
            came = extent if first <= extent.lines else extent._replace(size=0)
            return Search(query, came, caps=_caps(context), expired=is_late, pattern=pattern)

        answer = await search(context.service.archive, entry, begin, scan)
    return context.text(entry, replace(answer, total_bytes=entry.size))


async def _first_line(context: RequestContext[Q], entry: Entry) -> int:
    """Return the first line that the query is about."""
    since = context.query.since
    if since is None:
        return 1
    return await first_line_since(context.service.archive, entry, seconds_of(since))


async def summary(context: RequestContext[wire.SummaryQuery]) -> web.Response:
    entry = await context.entry()
    async with context.scan() as scan:
        is_late = _deadline(context, scan)

        def begin(extent: Extent) -> Summarizer:
            return Summarizer(
                extent,
                content_type=entry.content_type,
                kind=entry.kind,
                expired=is_late,
                masked=mask_numbers,
                numbers=context.query.line_numbers,
            )

        answer = await inspect(context.service.archive, entry, begin, scan)
    response = context.json(with_state(entry, answer))
    context.count_read(entry, answer.mode, response.content_length or 0)
    return response


def _caps(context: RequestContext[Q]) -> Caps:
    return context.service.caps.within(context.query.max_bytes)


def _deadline(context: RequestContext[Any], scan: Scan) -> Callable[[], bool]:
    """Return a function that says, from any thread, whether the time of this scan is over."""
    until = time.monotonic() + context.service.settings.scan_seconds
    return lambda: scan.is_over or time.monotonic() > until


_text_route: Final = partial(capture_read, answers={200: wire.Text}, is_text=True)

ROUTES: Final = (
    capture_read(
        path=Path.SUMMARY,
        handler=summary,
        summary="Summarize: figures, first and last lines, repeated lines, errors and warnings, JSON shape.",
        query=wire.SummaryQuery,
        answers={200: wire.Summary},
    ),
    _text_route(path=Path.HEAD, handler=head, query=wire.HeadQuery, summary="Return the first lines."),
    _text_route(path=Path.TAIL, handler=tail, query=wire.TailQuery, summary="Return the last lines."),
    _text_route(
        path=Path.LINES,
        handler=between,
        query=wire.LinesQuery,
        summary="Return the lines from `start` to `end`, both included. The first line is 1.",
    ),
    _text_route(
        path=Path.GREP,
        handler=grep,
        query=wire.GrepQuery,
        summary="Return the lines that match an RE2 pattern, with the lines around them.",
    ),
)
