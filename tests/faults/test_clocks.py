"""A replica whose clock is wrong removes nothing of others', and tells no wrong times."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill import wire
from overspill.errors import Expired
from overspill.wire import Code
from overspill_service.archive.shared_clock import SharedClock
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.errors import ClockJumped, StoreUnavailable
from overspill_service.maintenance import Maintenance

from tests.faults.traffic import client_of, code_of, keys_in, until
from tests.servers.overspill import ForkedService, ServiceProcess
from tests.web.conftest import Api, path_of

if TYPE_CHECKING:
    from overspill.transfer.client import Client

    from tests.faults.conftest import StartServices
    from tests.servers.redis import RedisServer

LOG = b"one line\n"
OTHER = b"another line\n"
TWO_HOURS = 2 * 3600
SKEWED = """
import sys, time
from functools import partial
from overspill_service import __main__
from overspill_service.server import process

seconds = float(sys.argv.pop(1))
process.make_app = partial(process.make_app, clock=lambda: time.time() + seconds)
sys.exit(__main__.main())
"""
"""The service with another clock: first its lead in seconds, then the command's own arguments."""


class At:
    """A back end that only tells the time."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    async def now(self) -> float | None:
        if self.seconds is not None and self.seconds < 0:
            raise StoreUnavailable("down")
        return self.seconds


@pytest.mark.parametrize(
    ("machine", "catalog", "store", "skew"),
    [
        (1000, None, None, 0),
        (1000, 1000, 1000, 0),
        (1004, 1000, 1000, 0),
        (8200, 1000, 1001, 7199),
        (8200, 1000, None, 7200),
        (8200, None, 1000, 7200),
        (1000, 8200, None, -7200),
        (1000, 8200, 1001, 0),
        (1000, 1001, 8200, 0),
        (8200, 1000, -1, 7200),
        (8200, -1, -1, 0),
    ],
)
async def test_the_shared_time_is_that_of_the_clock_in_the_middle(
    machine: float, catalog: float | None, store: float | None, skew: float
) -> None:
    clock = SharedClock(lambda: machine, At(catalog), At(store), lambda: 0.0)  # type: ignore[arg-type]

    await clock.measure()

    assert clock.skew == pytest.approx(skew, abs=1)
    assert clock.now() == pytest.approx(machine - skew, abs=1)


async def test_the_shared_time_counts_on_while_no_back_end_answers() -> None:
    steady, catalog = [0.0], At(1000)
    clock = SharedClock(lambda: 8200, catalog, At(None), lambda: steady[0])  # type: ignore[arg-type]
    await clock.measure()
    catalog.seconds, steady[0] = -1, 60.0
    await clock.measure()

    assert (clock.now(), clock.skew) == (1060, 7200)


@pytest.fixture
async def skewed_fleet(start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path) -> list[Api]:
    """Two replicas in this process, the second with a clock that is two hours ahead."""
    settings = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
    right = await start_api(**settings)
    await until(right.service.archive.catalog.is_complete)
    wrong = await start_api(**settings, clock=lambda: time.time() + TWO_HOURS)
    return [right, wrong]


async def test_a_replica_that_is_ahead_neither_hides_nor_sweeps_what_others_stored(
    skewed_fleet: list[Api],
) -> None:
    right, wrong = skewed_fleet
    await right.put(LOG, Overspill_Ttl="3600")

    refused = await wrong.send("POST", wire.Path.SWEEP)

    assert (refused.status, await code_of(refused)) == (503, Code.CLOCK_SKEWED)
    assert (await wrong.get(path_of(LOG))).status == 200
    assert len(await keys_in(right)) == 1


@pytest.mark.parametrize("lead", [TWO_HOURS, -TWO_HOURS])
async def test_a_replica_with_a_wrong_clock_lets_captures_live_as_long_as_others_do(
    start_api: Callable[..., Any], own_redis: RedisServer, lead: int
) -> None:
    right: Api = await start_api(catalog=own_redis.url)
    wrong: Api = await start_api(catalog=own_redis.url, clock=lambda: time.time() + lead)

    theirs = await right.put(LOG, Overspill_Ttl="3600")
    own = await wrong.put(b"another\n", Overspill_Ttl="3600")

    assert abs((own.expires - theirs.expires).total_seconds()) < 600


async def test_a_replica_that_is_ahead_keeps_no_other_from_sweeping(skewed_fleet: list[Api]) -> None:
    right, wrong = skewed_fleet
    with pytest.raises(Exception, match="clock of this replica is \\+7200 s off"):
        await Maintenance(wrong.service).sweep_once()
    listed: list[str] = []
    expired = right.service.archive.catalog.expired

    async def counted(tenant: str, **options: Any) -> Any:
        listed.append(tenant)
        return await expired(tenant, **options)

    right.service.archive.catalog.expired = counted  # type: ignore[method-assign]
    await right.put(LOG)
    await Maintenance(right.service).sweep_once()

    assert listed == ["default"]


async def test_a_folder_has_no_clock_that_could_outvote_redis(
    skewed_fleet: list[Api],
) -> None:
    _, wrong = skewed_fleet

    assert await wrong.service.archive.store.now() is None
    assert wrong.service.archive.shared_clock.skew == pytest.approx(TWO_HOURS, abs=600)


async def test_a_replica_that_is_ahead_deletes_no_upload_as_an_orphan(skewed_fleet: list[Api]) -> None:
    _, wrong = skewed_fleet

    with pytest.raises(Exception, match="clock of this replica"):
        await sweep_orphans(wrong.service.archive, age=3600)


async def test_a_replica_with_a_wrong_clock_as_a_process_tells_right_times_and_sweeps_nothing(
    start_services: StartServices, own_redis: RedisServer, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"store": f"file://{tmp_path}/objects", "catalog": own_redis.url}
    (right,) = await asyncio.to_thread(start_services, 1, **settings)
    wrong = ForkedService(tmp_path / "wrong", **settings, sweep_interval=1)
    wrong.program = ["-c", SKEWED, str(TWO_HOURS)]
    await asyncio.to_thread(wrong.start)
    try:
        async with client_of(right, retries=3) as one, client_of(wrong) as other:
            theirs = await one.put(LOG, ttl=3600)
            own = await other.put("stored by the other", ttl=3600)
            assert abs((own.expires - theirs.expires).total_seconds()) < 600
            await until(lambda: asyncio.to_thread(has_refused, wrong))
            assert await other.content(theirs.id) == LOG
            assert await one.content(own.id) == b"stored by the other"
    finally:
        await asyncio.to_thread(wrong.stop)


def has_refused(service: ServiceProcess) -> bool:
    return "sweep failed, to be tried again: the clock of this replica" in service.logged()


@pytest.mark.parametrize("catalog", ["memory:", "redis"])
@pytest.mark.parametrize("jump", [2 * 86_400, -2 * 86_400])
async def test_a_clock_that_is_set_while_the_service_runs_changes_no_end_and_no_beginning(
    start_api: Callable[..., Any], request: pytest.FixtureRequest, catalog: str, jump: int
) -> None:
    lead = 0
    url = request.getfixturevalue("redis_url") if catalog == "redis" else catalog
    api: Api = await start_api(
        catalog=url, clock=lambda: time.time() + lead, steady=time.monotonic, default_ttl=3600
    )
    kept = await api.put(LOG)
    lead = jump

    assert (await api.get(path_of(LOG))).status == 200
    later = await api.put(OTHER)
    await api.service.archive.shared_clock.measure()
    assert (await api.get(path_of(OTHER))).status == 200
    assert abs((later.expires - kept.expires).total_seconds()) < 600


# --- one machine ----------------------------------------------------------------------------------


JUMPING = """
import sys, time
from functools import partial
from pathlib import Path
from overspill_service import __main__, maintenance
from overspill_service.commands import operations
from overspill_service.server import process

file = Path(sys.argv.pop(1))
clock = lambda: time.time() + float(file.read_text())
process.make_app = partial(process.make_app, clock=clock)
maintenance.POLL_SECONDS = 0.2
operations.open_archive = partial(operations.open_archive, clock=clock)
sys.exit(__main__.main())
"""
"""The service with a clock that can be set: first the file that holds its lead in seconds."""
DAYS = 2 * 86_400


async def test_a_clock_two_days_ahead_deletes_nothing_on_one_machine_nor_after_a_restart(
    tmp_path: Path,
) -> None:
    lead = tmp_path / "lead"
    lead.write_text("0")
    service = ForkedService(tmp_path / "service", sweep_interval=1)
    service.program = ["-c", JUMPING, str(lead)]
    await asyncio.to_thread(service.start)
    try:
        async with client_of(service) as client:
            kept = await client.put(LOG, ttl=86_400)
            lead.write_text(str(DAYS))
            await until(lambda: asyncio.to_thread(has_refused, service))
            assert await client.content(kept.id) == LOG
        await asyncio.to_thread(service.restart)
        before = service.logged().count("sweep failed")
        await until(lambda: asyncio.sleep(0, service.logged().count("sweep failed") > before))
        async with client_of(service) as client:
            assert await client.content(kept.id) == LOG

        trusted = [sys.executable, *service.program, "trust-clock", "--data", str(service.data)]
        ended = await asyncio.to_thread(
            subprocess.run, trusted, capture_output=True, text=True, check=True, timeout=60
        )
        assert json.loads(ended.stdout)["moved"] == pytest.approx(DAYS, abs=600)
        async with client_of(service) as client:
            await until(lambda: is_gone(client, kept.id))
    finally:
        await asyncio.to_thread(service.stop)


async def is_gone(client: Client, capture: str) -> bool:
    try:
        await client.content(capture)
    except Expired:
        return True
    return False


async def test_a_jump_of_all_clocks_of_a_machine_is_no_reason_to_sweep() -> None:
    machine, steady = [1000.0], [0.0]
    catalog = At(None)
    clock = SharedClock(lambda: machine[0], catalog, At(None), lambda: steady[0])  # type: ignore[arg-type]
    await clock.require_agreement()
    machine[0], steady[0] = 1060.0, 60.0
    await clock.require_agreement()
    machine[0] += DAYS

    with pytest.raises(ClockJumped, match="jumped by \\+172800 s"):
        await clock.require_agreement()
    machine[0] -= DAYS
    await clock.require_agreement()
