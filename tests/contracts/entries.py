"""Entries to put into catalogs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog.quotas import Totals
from overspill_service.catalog.records import Entry, Segment, Tombstone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Query

TENANT = "acme"
NOW = 1_800_000_000.0


def capture_id(number: int) -> str:
    digest = hashlib.sha256(str(number).encode()).digest()
    return "cap_" + base64.b32encode(digest).decode().lower()[:20]


def entry(number: int = 1, *, stored_size: int = 50, **changes: Any) -> Entry:
    """One complete capture, created `number` seconds after NOW and living for a day."""
    made = Entry(
        tenant=TENANT,
        id=capture_id(number),
        upload=f"upload{number:010d}",
        state=wire.State.COMPLETE,
        size=100 + number,
        lines=3,
        sha256=hashlib.sha256(str(number).encode()).digest(),
        content_type="text/plain",
        kind="log",
        tool="run_command",
        session="session-1",
        call_id=f"call_{number}",
        status="0",
        labels={"größe": "✓"},
        created=NOW + number,
        expires=NOW + number + 86_400,
        segments=[Segment(stored_size, 100 + number, 3)],
        index=b"\x00\xff",
    )
    return replace(made, **changes)


def tombstone(entry: Entry, reason: str = "deleted") -> Tombstone:
    return Tombstone(id=entry.id, reason=reason, at=NOW, keys=entry.keys)


def sums(entries: Iterable[Entry]) -> Totals:
    """The totals of a tenant with these entries and no others."""
    kept = list(entries)
    return Totals(
        captures=len(kept),
        size=sum(each.size for each in kept),
        stored_size=sum(each.stored_size for each in kept),
        metadata=sum(each.metadata_size for each in kept),
        oldest=min((each.created for each in kept), default=None),
    )


async def listed(
    catalog: Catalog, query: Query, *, limit: int = 100, now: float = NOW, tenant: str = TENANT
) -> list[Entry]:
    """Every page of a listing in a row."""
    found, cursor = await catalog.find(tenant, query, now=now, limit=limit)
    while cursor is not None:
        more, cursor = await catalog.find(tenant, query, now=now, limit=limit, cursor=cursor)
        found += more
    return found


async def rebuilt(catalog: Catalog) -> None:
    """Let a rebuild begin and end that has nothing to do."""
    await catalog.mark_complete(await catalog.begin_rebuild())


async def eventually(holds: Callable[[], Awaitable[bool]], within: float = 10) -> None:
    """Ask until it holds; `TimeoutError` after `within` seconds."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110  (a server's clock sets no event)
            await asyncio.sleep(0)


async def is_gone(catalog: Catalog, capture: str) -> bool:
    return await catalog.get(TENANT, capture) is None
