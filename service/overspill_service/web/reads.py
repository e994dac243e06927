"""Bounded reads of text: head, tail, lines, grep and summary."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.wire import Path, Scope

from overspill_service import lines
from overspill_service.grep import Search
from overspill_service.inspection import inspect, search
from overspill_service.web.registry import Route

if TYPE_CHECKING:
    from aiohttp import web
    from msgspec import Struct

    from overspill_service.chunks import Extent
    from overspill_service.web.call import Call


async def head(call: Call[wire.HeadQuery]) -> web.Response:
    def begin(extent: Extent) -> lines.LineRead:
        return lines.head(call.query.lines, extent, caps=call.service.caps, ansi=call.query.ansi)

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def tail(call: Call[wire.TailQuery]) -> web.Response:
    def begin(extent: Extent) -> lines.TailRead:
        return lines.tail(call.query.lines, extent, caps=call.service.caps, ansi=call.query.ansi)

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def between(call: Call[wire.LinesQuery]) -> web.Response:
    query = call.query

    def begin(extent: Extent) -> lines.LineRead:
        return lines.between(
            query.start, query.end, extent, offset=query.offset, caps=call.service.caps, ansi=query.ansi
        )

    return call.text(await inspect(call.service.archive, await call.entry(), begin))


async def grep(call: Call[wire.GrepQuery]) -> web.Response:
    until = time.monotonic() + call.service.settings.scan_seconds

    def begin(extent: Extent) -> Search:
        return Search(call.query, extent, caps=call.service.caps, expired=lambda: time.monotonic() > until)

    return call.text(await search(call.service.archive, await call.entry(), begin))


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
    _text_route(Path.HEAD, head, wire.HeadQuery, "The first lines."),
    _text_route(Path.TAIL, tail, wire.TailQuery, "The last lines."),
    _text_route(Path.LINES, between, wire.LinesQuery, "Lines from start to end, both inclusive, from 1."),
    _text_route(
        Path.GREP, grep, wire.GrepQuery, "Lines that match an RE2 pattern, with the lines around them."
    ),
)
