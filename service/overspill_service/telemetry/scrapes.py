"""Answers to scrapers of /metrics: a text is made once for all that wait for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

if TYPE_CHECKING:
    from collections.abc import Callable


class TextFormat(NamedTuple):
    content_type: str
    encode: Callable[[CollectorRegistry], bytes]


PLAIN: Final = TextFormat(CONTENT_TYPE_PLAIN_0_0_4, generate_latest)
OPENMETRICS: Final = TextFormat(openmetrics.CONTENT_TYPE_LATEST, openmetrics.generate_latest)


class Scrapes:
    """One text is made at a time, in a thread. Scrapers that come meanwhile share the next one.

    So no scraper gets values from before its request.
    """

    def __init__(self, collect: Callable[[], CollectorRegistry]) -> None:
        """`collect` returns the registry of all metrics, from any thread."""
        self._collect = collect
        self._lock = asyncio.Lock()
        self._next: dict[TextFormat, asyncio.Task[bytes]] = {}

    async def text(self, format_: TextFormat) -> bytes:
        """Return all metrics as they are now, or a moment later."""
        task = self._next.get(format_)
        if task is None:
            task = self._next[format_] = asyncio.create_task(self._make(format_), name="metrics")
        return await asyncio.shield(task)

    async def _make(self, format_: TextFormat) -> bytes:
        async with self._lock:
            del self._next[format_]
            return await asyncio.to_thread(lambda: format_.encode(self._collect()))
