"""A capture's charge on its tenant's quota of metadata, against the memory that it takes in a real Redis."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import redis
from overspill_service.catalog.live import Append, LiveRecord
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import FIXED_BYTES, LIVE_BYTES
from overspill_service.catalog.urls import open_catalog
from overspill_service.settings.settings import Settings

from tests.contracts.entries import entry
from tests.contracts.test_catalog_live import live_entry

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Entry

    from tests.servers.redis import RedisServer

COUNT: Final = 1200
BARE: Final[dict[str, Any]] = {"session": "", "call_id": "", "tool": "", "status": "", "labels": {}}


def named(number: int) -> dict[str, Any]:
    """Texts that no other capture has, so each takes an index of its own."""
    return {"session": f"s{number}", "call_id": f"c{number}", "tool": f"t{number}", "labels": {}}


def capture(kind: str, number: int) -> Entry:
    when: dict[str, Any] = {"created": time.time(), "expires": time.time() + 3600}
    if kind in ("live", "appended"):
        return live_entry(number, **named(number), **when)
    return entry(number, index=b"", **(BARE if kind == "bare" else named(number)), **when)


async def begin(catalog: Catalog, made: Entry, data: bytes) -> None:
    """Do what a producer's first two requests do."""
    now = time.time()
    await catalog.schedule(made.tenant, made.id, now + 300)
    await catalog.open_live(
        made.tenant, made.id, LiveRecord(producer="me", accepted=0, start=0, durable=0, active=now)
    )
    if data:
        await catalog.append_live(
            made.tenant, made.id, Append("me", 0, data, now), limit=2**20, tenant_limit=2**20
        )


@pytest.mark.parametrize("kind", ["bare", "named", "live", "appended"])
async def test_a_capture_takes_no_more_bytes_of_redis_than_are_charged(
    own_redis: RedisServer, kind: str
) -> None:
    client = redis.Redis(port=own_redis.port)
    catalog = open_catalog(own_redis.url, data_dir=Path())
    charged = before = 0
    for number in range(-10, COUNT):
        if number == 0:  # what the first ones took too, is taken once
            before = client.info("memory")["used_memory"]
        made = capture(kind, number)
        await catalog.commit(made, Quota())
        if made.is_live:
            await begin(catalog, made, b"x" if kind == "appended" else b"")
        charged += made.metadata_size
    taken = client.info("memory")["used_memory"] - before
    await catalog.close()
    client.close()

    assert charged / 2 < taken <= charged


def test_the_quota_of_metadata_bounds_the_number_of_captures() -> None:
    limits = Settings()
    smallest, smallest_live = entry(index=b"", segments=[], **BARE), live_entry(**BARE)

    assert limits.max_captures == 0
    assert limits.max_metadata_size // FIXED_BYTES == 262_144
    assert limits.max_metadata_size // (FIXED_BYTES + LIVE_BYTES) == 131_072
    assert smallest.metadata_size >= FIXED_BYTES
    assert smallest_live.metadata_size >= FIXED_BYTES + LIVE_BYTES
