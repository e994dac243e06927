"""CPU time of a tenant's scans, on all replicas together."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from overspill_service.errors import CpuTimeUsed
from overspill_service.resources.scans import ScanThreads
from overspill_service.web.replicas import ScanCpu

from tests.web.conftest import Api, path_of, problem
from tests.web.replicas import Clock, ToldFigures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiohttp import ClientResponse

SMALL = b"one line\nerror: another\n"


async def test_the_cpu_time_of_scans_is_limited_on_all_replicas_together(
    start_api: Callable[..., Any], redis_url: str, tmp_path: Path
) -> None:
    settings = {"catalog": redis_url, "store": f"file://{tmp_path}/objects", "max_scan_cpu": 200}
    pair: list[Api] = [await start_api(**settings) for _ in range(2)]
    await pair[0].put(SMALL)
    grep = f"{path_of(SMALL)}/grep?pattern=error"
    first = [(await each.get(grep)).status for each in pair]
    for each in pair:
        each.service.scans._tenants["default"].charge(180.0)  # they fade by 200 a minute
    refused = [await refusal(each, grep) for each in pair]

    assert first == [200, 200]
    assert {(await problem(each)).limit for each in refused} == {200}
    assert [(await each.get(f"{path_of(SMALL)}/head")).status for each in pair] == [200, 200]


async def refusal(api: Api, path: str) -> ClientResponse:
    """The first answer that is none of a read that passes."""
    async with asyncio.timeout(60):
        while (answer := await api.get(path)).status == 200:
            pass
        return answer


async def test_replicas_together_use_no_more_than_the_limit_however_a_tenant_spreads_its_scans() -> None:
    clock, catalog = Clock(), ToldFigures()
    replicas = [ScanThreads(1, clock=clock) for _ in range(4)]
    limits = [ScanCpu(each, clock) for each in replicas]
    used, minutes = 0.0, 10
    for tick in range(minutes * 60 * 4):
        clock.now += 0.25
        for number, each in enumerate(replicas):
            if (tick // 40) % 5 in (number, 4):  # ten seconds of one after the other, then of all together
                with suppress(CpuTimeUsed):
                    async with each.scan("default", 60) as scan:
                        scan._tenant.charge(0.5)
                        used += 0.5
        if tick % 4 == 3:
            for limit in limits:
                await limit.tell_once(cast("Any", catalog))
    for each in replicas:
        each.close()

    assert used == pytest.approx(60 + minutes * 60, rel=0.05)
