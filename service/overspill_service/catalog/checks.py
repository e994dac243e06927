"""Probes of a catalog: each operation of the port, as the service uses it. All adapters share them.

The probes have a tenant of their own, which is forgotten at the end.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service.catalog.backlogs import Backlog
from overspill_service.catalog.key_records import KeyRecord
from overspill_service.catalog.live import Append, LiveRecord
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.readers import ReadNote
from overspill_service.catalog.records import Entry, Query, Segment, Tombstone
from overspill_service.catalog.statistics import MINUTES, Cell, bucket_start
from overspill_service.errors import CatalogSilent, CatalogUnavailable
from overspill_service.errors.checks import CheckResult, run_probe
from overspill_service.store_format.object_keys import new_upload

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog

LEASE_SECONDS: Final = 60.0
"""Seconds after which a probe's lease lapses if it could not be given back."""
TOMBSTONE_SECONDS: Final = 0.001
NEWS_SECONDS: Final = 3.0
"""How long news of an append may take."""
PROBE: Final = b"p"
"""The bytes that are appended to a live capture."""


async def check_operations(catalog: Catalog) -> list[CheckResult]:
    """Probe each operation of the port. A failed probe does not stop the others, unless nothing answers."""
    if silence := await _silence(catalog):  # each probe would wait as long to say the same
        return [CheckResult("catalog: ping", ok=False, detail=silence)]
    probes = Probes(catalog)
    named = {
        "ping": probes.ping,
        "clock": probes.clock,
        "record a capture": probes.commit,
        "look it up": probes.get,
        "list it": probes.find,
        "change its expiry": probes.amend,
        "who reads it": probes.readers,
        "count it": probes.totals,
        "find it expired": probes.expired,
        "remove it": probes.remove,
        "leases": probes.lease,
        "keys": probes.keys,
        "statistics": probes.statistics,
        "backlogs of spools": probes.backlogs,
        "live captures": probes.live,
        "news of live captures": probes.news,
        "completeness": probes.completeness,
        "forget the probes": probes.forget,
    }
    return [await run_probe(f"catalog: {name}", probe) for name, probe in named.items()]


async def _silence(catalog: Catalog) -> str:
    """Return why the catalog does not answer. Empty if it answers, even with a refusal."""
    try:
        await catalog.ping()
    except CatalogSilent as error:
        return str(error)
    except CatalogUnavailable:
        return ""
    return ""


class Probes:
    """One run of probes with one entry. Each probe raises a `ServiceError` that says what is wrong."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tenant = f"probe-{secrets.token_hex(8)}"
        self._now = time.time()
        self._entry = _entry(self._tenant, self._now)

    async def ping(self) -> str:
        await self._catalog.ping()
        return ""

    async def clock(self) -> str:
        now = await self._catalog.now()
        return "" if now is None else f"{time.time() - now:+.1f} s from the catalog's"

    async def commit(self) -> str:
        quota = Quota(captures=1, is_exact=False)
        await self._catalog.reserve(self._tenant, self._entry.upload, 1, 1, quota, keep=LEASE_SECONDS)
        await self._catalog.commit(self._entry, quota)
        await self._catalog.free(self._tenant, self._entry.upload)
        return ""

    async def get(self) -> str:
        found = await self._catalog.get(self._tenant, self._entry.id)
        return _require(bool(found == self._entry), "it is not found as it was recorded")

    async def find(self) -> str:
        query = Query(session=self._entry.session, call_id=self._entry.call_id, tool=self._entry.tool)
        found, _ = await self._catalog.find(self._tenant, query, now=self._now, limit=10)
        return _require(found == [self._entry], "a listing does not show it")

    async def amend(self) -> str:
        changed = await self._catalog.amend(self._entry, expires=self._entry.expires + 1, marker=None)
        return _require(changed is not None, "it is not found as it was recorded")

    async def readers(self) -> str:
        note = ReadNote(self._entry.id, self._entry.upload, "probe", on_page=False, at=self._now)
        await self._catalog.note_readers(self._tenant, [note], max_bytes=0)
        found = await self._catalog.readers(self._tenant, self._entry.id)
        return _require([each.name for each in found] == ["probe"], "who has read it is not found")

    async def totals(self) -> str:
        known = self._tenant in await self._catalog.tenants()
        counted = (await self._catalog.totals(self._tenant)).captures
        return _require(known and counted == 1, f"{counted} captures are counted, 1 was recorded")

    async def expired(self) -> str:
        later = self._entry.expires + 2
        found = await self._catalog.expired(self._tenant, now=later, limit=10)
        return _require([each.id for each in found] == [self._entry.id], "it is not among those that expired")

    async def remove(self) -> str:
        entry = self._entry
        tombstone = Tombstone(id=entry.id, reason="deleted", at=self._now, keys=entry.keys)
        is_removed = await self._catalog.remove(entry, tombstone, keep=TOMBSTONE_SECONDS)
        return _require(is_removed, "it was gone already")

    async def lease(self) -> str:
        is_held = await self._catalog.lease(self._tenant, "probe", LEASE_SECONDS)
        is_other = await self._catalog.lease(self._tenant, "other", LEASE_SECONDS)
        await self._catalog.release(self._tenant, "probe")
        is_first = await self._catalog.once(self._tenant, TOMBSTONE_SECONDS)
        return _require(is_held and is_first and not is_other, "two replicas can hold one lease")

    async def keys(self) -> str:
        record = KeyRecord(
            hash=hashlib.sha256(self._tenant.encode()).hexdigest(), tenant=self._tenant, scopes=[]
        )
        await self._catalog.add_key(record)
        try:
            found = await self._catalog.find_key(record.hash)
            await self._catalog.keys()
            await self._catalog.note_uses({record.hash: self._now})
            is_noted = (await self._catalog.uses()).get(record.hash) == self._now
        finally:
            await self._catalog.revoke_key(record.hash)
        return _require(found == record and is_noted, "a key is not found as it was recorded")

    async def statistics(self) -> str:
        """Add one batch twice: it must count once."""
        cell, start = Cell("probe"), bucket_start(self._now, MINUTES)
        for _ in range(2):
            await self._catalog.add_sums(
                self._tenant, {cell: 1}, now=self._now, batch="probe", memory=LEASE_SECONDS
            )
        found = await self._catalog.sums(self._tenant, MINUTES, since=start, until=start + 1)
        counted = found.get(start, {}).get(cell.encode(), 0)
        await self._catalog.keep_rollup(self._tenant, "probe", b"probe", now=self._now, keep=LEASE_SECONDS)
        stored = await self._catalog.rollup(self._tenant, "probe")
        await self._catalog.forget_rollups(self._tenant)
        if stored != b"probe":
            raise CatalogUnavailable("a roll-up is not found as it was kept")
        return _require(counted == 1, f"a batch that was added twice counts {counted} times")

    async def backlogs(self) -> str:
        spool, backlog = secrets.token_hex(8), Backlog(1, 1, self._now)
        for each in (backlog, backlog._replace(captures=0)):
            await self._catalog.note_backlog(self._tenant, spool, each, now=self._now, keep=LEASE_SECONDS)
            found = (await self._catalog.backlogs(self._now)).get(self._tenant)
            if found != (each if each.captures else None):
                raise CatalogUnavailable("what waits in a spool is not found as it was reported")
        return ""

    async def live(self) -> str:
        tenant, capture = self._tenant, self._entry.id
        record = LiveRecord(producer="probe", accepted=0, start=0, durable=0, active=self._now)
        try:
            await self._catalog.open_live(tenant, capture, record)
            await self._append(0)
            await self._catalog.plan_cut(tenant, capture, 1)
            await self._catalog.end_live(tenant, capture, 1, b"probe")
            found = await self._catalog.live(tenant, capture)
        finally:
            await self._catalog.forget_live(tenant, capture)
        is_right = found is not None and (found.buffer, found.ending) == (PROBE, b"probe")
        return _require(is_right, "what was appended is not found")

    async def news(self) -> str:
        """Watch a capture, and append to it."""
        tenant, capture, has_news = self._tenant, self._entry.id, asyncio.Event()
        record = LiveRecord(producer="probe", accepted=0, start=0, durable=0, active=self._now)
        await self._catalog.watch(tenant, capture, lambda _offset, _data: has_news.set())
        try:
            await self._catalog.open_live(tenant, capture, record)
            await self._append(0)
            async with asyncio.timeout(NEWS_SECONDS):
                await has_news.wait()
        except TimeoutError as error:
            raise CatalogUnavailable(
                "no news of an append came: the Redis user may lack SUBSCRIBE, or the channels &ov1:*"
            ) from error
        finally:
            await self._catalog.unwatch(tenant, capture)
            await self._catalog.forget_live(tenant, capture)
        return ""

    async def _append(self, offset: int) -> None:
        append = Append("probe", offset, PROBE, self._now)
        await self._catalog.append_live(self._tenant, self._entry.id, append, limit=1, tenant_limit=1)

    async def completeness(self) -> str:
        is_complete = await self._catalog.is_complete()
        return "" if is_complete else "it is new, or was lost: it will be rebuilt"

    async def forget(self) -> str:
        await self._catalog.forget_tenant(self._tenant)
        return ""


def _entry(tenant: str, now: float) -> Entry:
    digest = hashlib.sha256(tenant.encode()).digest()
    return Entry(
        tenant=tenant,
        id=wire.capture_id("probe", "probe", digest),
        upload=new_upload(),
        state=wire.State.COMPLETE,
        size=1,
        lines=1,
        sha256=digest,
        content_type="text/plain",
        kind="text",
        tool="probe",
        session="probe",
        call_id="probe",
        created=now,
        expires=now + LEASE_SECONDS,
        segments=[Segment(1, 1, 0)],
    )


def _require(holds: bool, failure: str) -> str:  # noqa: FBT001  (a condition)
    if not holds:
        raise CatalogUnavailable(failure)
    return ""
