"""Redis is full: nothing new is stored, and everything that frees memory works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.archive.sweep import sweep_all
from overspill_service.errors import CatalogUnavailable
from overspill_service.maintenance import Maintenance

from tests.faults.traffic import until
from tests.web.conftest import Api, path_of, problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.redis import RedisServer

CAPTURES = 30


@pytest.fixture
async def full(start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path) -> Api:
    """A service with captures of two sessions on a Redis that takes no more."""
    api: Api = await start_api(store=f"file://{tmp_path}/objects", catalog=f"{own_redis.url}?deadline=5")
    await until(api.service.archive.catalog.is_complete)
    for number in range(CAPTURES):
        await api.put(b"%d\n" % number, f"call_{number}", Overspill_Session="abc"[number % 3])
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    own_redis.command("CONFIG", "SET", "maxmemory", 1)
    return api


async def test_new_captures_are_refused_and_the_service_stays_ready(full: Api) -> None:
    refused = await full.send("PUT", path_of(b"new"), data=b"new")

    assert refused.status == 503
    assert "out of memory" in (await problem(refused)).detail
    assert (await full.get("/readyz")).status == 200
    assert (await (await full.get(path_of(b"3\n", "call_3") + "/content")).read()) == b"3\n"


async def test_captures_and_sessions_are_deleted(full: Api) -> None:
    one = await full.send("DELETE", path_of(b"0\n", "call_0"))
    session = await full.send("DELETE", "/v1/sessions/b")

    assert (one.status, session.status) == (200, 200)
    assert (await session.json())["captures"] == CAPTURES // 3
    assert (await (await full.get("/v1/usage")).json())["captures"] == CAPTURES - 1 - CAPTURES // 3


async def test_who_has_read_is_told_once_there_is_room(full: Api, own_redis: RedisServer) -> None:
    await full.get(path_of(b"3\n", "call_3") + "/content")
    with pytest.raises(CatalogUnavailable, match="out of memory"):
        await full.service.reader_notes.report()
    own_redis.command("CONFIG", "SET", "maxmemory", 0)
    await full.service.reader_notes.report()
    found = await (await full.get(path_of(b"3\n", "call_3") + "/readers")).json()

    assert len(found["readers"]) == 1


async def test_the_sweep_takes_its_lease_and_removes_what_has_expired(full: Api) -> None:
    archive = full.service.archive
    later = archive.clock() + 10**7
    archive.clock = lambda: later
    assert await archive.catalog.lease("sweep", "me", 60)
    swept = await sweep_all(archive, await archive.catalog.tenants())

    assert (swept.removed.captures, swept.failed) == (CAPTURES, [])


async def test_maintenance_sweeps_a_full_redis_by_itself(full: Api) -> None:
    maintenance = Maintenance(full.service)
    later = full.service.archive.clock() + 10**7
    full.service.archive.clock = lambda: later
    await maintenance.sweep_once()

    assert await full.service.archive.catalog.expired("default", now=later, limit=10) == []
