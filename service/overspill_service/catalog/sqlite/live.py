"""Live captures in the SQLite file: their buffers, when to look at them, and their news.

Accepted bytes need not be on the disk, so their transactions do not wait for it. Other processes see them
all the same. A process that watches captures asks the file ten times a second what others have appended.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill_service.catalog.live import LOOK_AGAIN, AppendStatus, LiveTotals
from overspill_service.catalog.sqlite import live_steps
from overspill_service.catalog.sqlite.access import SqliteAccess
from overspill_service.resources.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog.live import Append, Appended, LiveRecord
    from overspill_service.catalog.records import Entry

POLL_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class SqliteLive(SqliteAccess):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watched: dict[tuple[str, str], Callable[[int, bytes], None]] = {}
        self._polling: asyncio.Task[None] | None = None
        self._seen = 0
        """The number of the last change that was reported."""

    async def open_live(
        self, tenant: str, capture: str, record: LiveRecord, *, only_of: Entry | None = None
    ) -> bool:
        return await self._writer.run(partial(live_steps.open_buffer, (tenant, capture), record, only_of))

    async def doubt_live(self, tenant: str, capture: str) -> None:
        await self._writer.run(partial(live_steps.doubt, (tenant, capture)), is_durable=False)

    async def append_live(
        self, tenant: str, capture: str, append: Append, *, limit: int, tenant_limit: int
    ) -> Appended:
        step = partial(live_steps.append, (tenant, capture), append, limit, tenant_limit)
        appended = await self._writer.run(step, is_durable=False)
        if appended.status is AppendStatus.DONE and append.data:
            self._tell(tenant, capture, append.offset, append.data)
        return appended

    async def live(
        self, tenant: str, capture: str, *, since: int = 0, limit: int | None = None
    ) -> LiveRecord | None:
        return await self._reader.run(partial(live_steps.read, (tenant, capture), since, limit))

    async def live_totals(self, tenant: str) -> LiveTotals:
        unstored = (
            "SELECT coalesce(sum(accepted - durable), 0) FROM live WHERE tenant = ? AND accepted > durable"
        )
        select = f"SELECT (SELECT count(*) FROM live WHERE tenant = ?), ({unstored})"  # noqa: S608  (constants)
        return LiveTotals(*(await self._rows(select, (tenant, tenant)))[0])

    async def plan_cut(self, tenant: str, capture: str, end: int) -> int | None:
        return await self._writer.run(partial(live_steps.plan_cut, (tenant, capture), end))

    async def end_live(self, tenant: str, capture: str, offset: int, ending: bytes) -> bool:
        return await self._writer.run(partial(live_steps.end, (tenant, capture), offset, ending))

    async def replace(self, old: Entry, new: Entry) -> Entry | None:
        stored = await self._writer.run(partial(live_steps.replace, old, new))
        self._tell(new.tenant, new.id, LOOK_AGAIN, b"")
        return stored

    async def forget_live(self, tenant: str, capture: str) -> None:
        await self._writer.run(partial(live_steps.forget, (tenant, capture)))
        await self.schedule(tenant, capture, None)
        self._tell(tenant, capture, LOOK_AGAIN, b"")

    async def schedule(self, tenant: str, capture: str, at: float | None) -> None:
        if at is None:
            await self._write("DELETE FROM live_due WHERE tenant = ? AND id = ?", (tenant, capture))
        else:
            await self._write("INSERT OR REPLACE INTO live_due VALUES (?, ?, ?)", (tenant, capture, at))

    async def due(self, now: float, limit: int, *, skip: int = 0) -> list[tuple[str, str]]:
        select = "SELECT tenant, id FROM live_due WHERE at <= ? ORDER BY at LIMIT ? OFFSET ?"
        return [(tenant, capture) for tenant, capture in await self._rows(select, (now, limit, skip))]

    async def scheduled_after(self, instant: float, limit: int) -> list[tuple[str, str]]:
        select = "SELECT tenant, id FROM live_due WHERE at > ? ORDER BY at LIMIT ?"
        return [(tenant, capture) for tenant, capture in await self._rows(select, (instant, limit))]

    async def scheduled_count(self) -> int:
        return int((await self._rows("SELECT count(*) FROM live_due"))[0][0])

    async def watch(self, tenant: str, capture: str, on_news: Callable[[int, bytes], None]) -> None:
        self._watched[tenant, capture] = on_news
        if self._polling is None and self._path is not None:
            self._polling = asyncio.create_task(self._poll(), name="news of live captures")

    async def unwatch(self, tenant: str, capture: str) -> None:
        self._watched.pop((tenant, capture), None)
        if not self._watched and self._polling is not None:
            await self._stop_polling()

    async def close(self) -> None:
        await self._stop_polling()
        await super().close()

    async def _stop_polling(self) -> None:
        if self._polling is not None:
            polling, self._polling = self._polling, None
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    async def _poll(self) -> None:
        """Tell of what any process has changed, until cancelled."""
        attempts = Attempts(log)
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await attempts.make("asking for news of live captures", self._poll_once())

    async def _poll_once(self) -> None:
        self._seen, changed = await self._reader.run(partial(live_steps.news, self._seen))
        for name in list(self._watched) if changed is None else changed:
            self._tell(*name, LOOK_AGAIN, b"")

    def _tell(self, tenant: str, capture: str, offset: int, data: bytes) -> None:
        on_news = self._watched.get((tenant, capture))
        if on_news is not None:
            on_news(offset, data)
