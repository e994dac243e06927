"""Bounded reads of text: head, tail, lines, grep and summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overspill import wire
from overspill.reading import lines
from overspill.reading.grep import Search
from overspill.reading.summary import Summarizer
from overspill.wire import Path, Scope

from overspill_service.archive.inspection import inspect, search
from overspill_service.archive.number_mask import masked
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web
    from msgspec import Struct
    from overspill.reading.chunks import Caps, Extent

    from overspill_service.web.call import Call

Q = TypeVar("Q", bound=wire.ReadQuery)


async def head(call: Call[wire.HeadQuery]) -> web.Response:
    def begin(extent: Extent) -> lines.LineRead:
        return lines.head(call.query.lines, extent, caps=_caps(call), ansi=call.query.ansi)

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def tail(call: Call[wire.TailQuery]) -> web.Response:
    def begin(extent: Extent) -> lines.TailRead:
        return lines.tail(call.query.lines, extent, caps=_caps(call), ansi=call.query.ansi)

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def between(call: Call[wire.LinesQuery]) -> web.Response:
    query = call.query

    def begin(extent: Extent) -> lines.LineRead:
        return lines.between(
            query.start, query.end, extent, offset=query.offset, caps=_caps(call), ansi=query.ansi
        )

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def grep(call: Call[wire.GrepQuery]) -> web.Response:
    is_late = _deadline(call)

    def begin(extent: Extent) -> Search:
        return Search(call.query, extent, caps=_caps(call), expired=is_late)

    return call.text(await search(call.service.archive, await call.entry(), begin))


async def summary(call: Call[wire.RefQuery]) -> web.Response:
    entry = await call.entry()
    is_late = _deadline(call)

    def begin(extent: Extent) -> Summarizer:
        return Summarizer(
            extent, content_type=entry.content_type, kind=entry.kind, expired=is_late, masked=masked
        )

    answer = await inspect(call.service.archive, entry, begin)
    response = call.json(answer)
    call.service.metrics.read(call.principal.tenant.name, answer.mode, response.content_length or 0)
    return response


def _caps(call: Call[Q]) -> Caps:
    return call.service.caps.within(call.query.max_bytes)


def _deadline(call: Call[Any]) -> Callable[[], bool]:
    """Says, from any thread, whether this read has had its time."""
    until = time.monotonic() + call.service.settings.scan_seconds
    return lambda: time.monotonic() > until


def _text_route(path: str, handler: object, query: type[Struct], summary: str) -> Route:
    return Route(
        method="GET",
        path=path,
        scope=Scope.READ,
        handler=handler,  # type: ignore[arg-type]  # each handler takes its own query
        summary=summary,
        query=query,
        answers={200: wire.Text},
        is_text=True,
    )


ROUTES: Final = (
    Route(
        method="GET",
        path=Path.SUMMARY,
        scope=Scope.READ,
        handler=summary,
        summary="Figures, first and last lines, repeated lines, errors and warnings, JSON shape.",
        query=wire.RefQuery,
        answers={200: wire.Summary},
    ),
    _text_route(Path.HEAD, head, wire.HeadQuery, "The first lines."),
    _text_route(Path.TAIL, tail, wire.TailQuery, "The last lines."),
    _text_route(Path.LINES, between, wire.LinesQuery, "Lines from start to end, both inclusive, from 1."),
    _text_route(
        Path.GREP, grep, wire.GrepQuery, "Lines that match an RE2 pattern, with the lines around them."
    ),
)
