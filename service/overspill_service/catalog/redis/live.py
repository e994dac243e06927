"""Live captures in Redis: their buffers, and when to look at them."""

from __future__ import annotations

from overspill.wire import State

from overspill_service.catalog import encoding
from overspill_service.catalog.live import NO_BYTES, Append, Appended, AppendStatus, LiveRecord, LiveTotals
from overspill_service.catalog.records import Entry
from overspill_service.catalog.redis import key_names, live_scripts
from overspill_service.catalog.redis.access import RedisAccess


class RedisLive(RedisAccess):
    async def open_live(
        self, tenant: str, capture: str, record: LiveRecord, *, only_of: Entry | None = None
    ) -> bool:
        keys: list[str] = key_names.of_live(tenant, capture)
        arguments = [record.producer, record.accepted, milliseconds_of(record.active), record.reached]
        if only_of is not None:
            keys.append(key_names.state(tenant, State.LIVE))
            arguments.append(encoding.position(only_of.created, only_of.id))
        return bool(await self._client.step(live_scripts.OPEN, keys, *arguments))

    async def doubt_live(self, tenant: str, capture: str) -> None:
        await self._client.step(live_scripts.DOUBT, key_names.of_live(tenant, capture))

    async def append_live(
        self, tenant: str, capture: str, append: Append, *, limit: int, tenant_limit: int
    ) -> Appended:
        await self._require_no_eviction()
        producer, offset, data, now = append
        limits = limit, tenant_limit
        answer = await self._client.step(
            live_scripts.APPEND,
            key_names.of_live(tenant, capture),
            *(producer, offset, data, milliseconds_of(now), *limits, key_names.news(tenant, capture)),
        )
        return Appended(AppendStatus(answer[0]), *answer[1:])

    async def live(
        self, tenant: str, capture: str, *, since: int = 0, limit: int | None = None
    ) -> LiveRecord | None:
        bounds = since, NO_BYTES if limit is None else limit
        answer = await self._client.step(live_scripts.READ, key_names.of_live(tenant, capture), *bounds)
        if answer is None:
            return None
        producer, accepted, durable, active, cut, ending, opened, reached, marks, buffer = answer
        return LiveRecord(
            producer=producer.decode(),
            accepted=int(accepted),
            start=max(since, int(durable)),
            durable=int(durable),
            active=int(active) / 1000,
            opened=int(opened),
            reached=int(reached or 0),
            cut=None if cut is None else int(cut),
            ending=ending,
            buffer=buffer,
            marks=marks,
        )

    async def live_totals(self, tenant: str) -> LiveTotals:
        keys = [key_names.state(tenant, State.LIVE), key_names.buffered(tenant)]
        captures, unstored = await self._client.step(live_scripts.TOTALS, keys)
        return LiveTotals(int(captures), int(unstored or 0))

    async def plan_cut(self, tenant: str, capture: str, end: int) -> int | None:
        answer = await self._client.step(live_scripts.CUT, key_names.of_live(tenant, capture), end)
        return None if answer is None else int(answer)

    async def end_live(self, tenant: str, capture: str, offset: int, ending: bytes) -> bool:
        keys = key_names.of_live(tenant, capture)
        return bool(await self._client.step(live_scripts.END, keys, offset, ending))

    async def replace(self, old: Entry, new: Entry) -> Entry | None:
        tenant = old.tenant
        keys = [
            *(key_names.capture(tenant, old.id), key_names.expiry(tenant), key_names.totals(tenant)),
            *(key_names.state(tenant, old.state), *key_names.of_live(tenant, old.id)),
            *(key_names.sizes(tenant), key_names.reserved(tenant)),
        ]
        if new.state is State.PARTIAL:
            keys.append(key_names.state(tenant, new.state))
        news = "grown" if new.is_live else "ended" if old.state is not new.state else "moved"
        values = (
            *(encoding.encode_entry(new), new.id, repr(new.expires), new.size),
            *(new.size - old.size, new.stored_size - old.stored_size, new.metadata_size - old.metadata_size),
            *(encoding.position(new.created, new.id), news, key_names.news(tenant, new.id), old.upload),
        )
        answer = await self._compared(
            old, lambda value: self._client.step(live_scripts.REPLACE, keys, value, *values)
        )
        self._completeness.note_write()
        if answer == 1:
            return new
        stored = None if answer is None else encoding.decode(answer)
        return stored if isinstance(stored, Entry) else None

    async def forget_live(self, tenant: str, capture: str) -> None:
        keys = key_names.of_live(tenant, capture)
        await self._client.step(live_scripts.FORGET_LIVE, keys, key_names.news(tenant, capture))
        await self.schedule(tenant, capture, None)

    async def schedule(self, tenant: str, capture: str, at: float | None) -> None:
        when = "" if at is None else repr(at)
        await self._client.step(live_scripts.SCHEDULE, [key_names.LIVE], f"{tenant}/{capture}", when)

    async def due(self, now: float, limit: int, *, skip: int = 0) -> list[tuple[str, str]]:
        members = await self._client.call(
            "ZRANGEBYSCORE", key_names.LIVE, "-inf", repr(now), "LIMIT", skip, limit
        )
        return [*map(_name_of, members)]

    async def scheduled_after(self, instant: float, limit: int) -> list[tuple[str, str]]:
        members = await self._client.call(
            "ZRANGEBYSCORE", key_names.LIVE, f"({instant!r}", "+inf", "LIMIT", 0, limit
        )
        return [*map(_name_of, members)]

    async def scheduled_count(self) -> int:
        return int(await self._client.call("ZCARD", key_names.LIVE))


def _name_of(member: bytes) -> tuple[str, str]:
    tenant, _, capture = member.decode(errors="replace").partition("/")
    return tenant, capture


def milliseconds_of(instant: float) -> int:
    return round(instant * 1000)
