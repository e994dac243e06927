"""A slow uplink is not a failing service: uploads are judged by their progress."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import Client, Guard, Policy, Spool, SyncClient
from overspill.delivery import health
from overspill.delivery.upload import Upload
from overspill.spools import flush, flush_job
from overspill.wire import Outcome

from tests.servers import slow_link
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.delivery.circuit import Circuit
    from overspill.guard.guarded import Guarded
    from overspill.spools.flush import Flushed
    from overspill.spools.partition import Partition

    from tests.servers.overspill import ServiceProcess
    from tests.servers.slow_link import SlowLink

LONG: Final = "2026-11-01 12:00:00 request %d served\n" * 200_000 % tuple(range(200_000))
SMALL: Final = "a line of a small output\n" * 2_500
IMPATIENT: Final = Policy(wait=0.5)
PATIENT: Final = Policy(wait=120)
SECONDS: Final = 120.0


def is_spooled(spool: Spool) -> bool:
    return any(partition.entries() for partition in spool.partitions())


def circuit_of(guard: Guard) -> Circuit:
    assert guard._storage.health is not None
    return guard._storage.health.circuit


async def slow_and_small(guard: Guard, way: str) -> tuple[Guarded, Guarded]:
    """What becomes of a long output, and of a small one after it."""
    if way == "sync":
        slow = await asyncio.to_thread(guard.process_sync, LONG, tool="t", policy=IMPATIENT)
        return slow, await asyncio.to_thread(guard.process_sync, SMALL, tool="t", policy=PATIENT)
    slow = await guard.process(LONG, tool="t", policy=IMPATIENT)
    return slow, await guard.process(SMALL, tool="t", policy=PATIENT)


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_an_upload_that_takes_longer_than_the_agent_waits_goes_on_behind_its_notice(
    service: ServiceProcess, tmp_path: Path, way: str
) -> None:
    spool = Spool(tmp_path / "spool")
    with slow_link.running(service.url, rate=2_000_000) as link, SyncClient(link.url) as client:
        guard = Guard(client, session=f"slow-{way}", spool=spool)
        slow, small = await slow_and_small(guard, way)
        passed_then = link.passed
        circuit = circuit_of(guard)
        assert await asyncio.to_thread(until, lambda: not is_spooled(spool))
        passed = link.passed
        stored = await asyncio.to_thread(client.content, str(slow.capture))
        guard.close()

    assert (slow.outcome, small.outcome) == (Outcome.SPOOLED, Outcome.CAPTURED)
    assert slow.reason == "its upload takes longer than 0.5 s and goes on"
    assert passed_then < len(LONG)  # it was handed out before all had gone
    assert passed < 1.2 * len(LONG)  # and nothing was sent twice
    assert stored == LONG.encode()
    assert not circuit.is_open


async def test_an_upload_that_goes_on_is_no_flushs_from_the_moment_that_its_output_is_in_the_spool(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Flushed] = []
    finish_for = Upload.finish_for

    def flush_first(upload: Upload, partition: Partition, *more: Any) -> None:
        with SyncClient(service.url, retries=0) as other:
            flushed.append(flush.flush(partition, other))
        finish_for(upload, partition, *more)

    monkeypatch.setattr(Upload, "finish_for", flush_first)
    spool = Spool(tmp_path / "spool")
    with slow_link.running(service.url, rate=8_000_000) as link, SyncClient(link.url) as client:
        guard = Guard(client, session="flush-first", spool=spool)
        guarded = await guard.process(LONG, tool="t", policy=IMPATIENT)
        assert await asyncio.to_thread(until, lambda: not is_spooled(spool))
        guard.close()

    assert guarded.outcome is Outcome.SPOOLED
    assert [(done.elsewhere, done.uploaded) for done in flushed] == [(1, 0)]


async def test_the_upload_outlives_the_event_loop_of_its_agent(
    service: ServiceProcess, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    with slow_link.running(service.url, rate=2_000_000) as link:

        async def agent() -> Guarded:
            async with Client(link.url, session="outlives") as client:
                guards.append(Guard(client, spool=spool))
                return await guards[0].process(LONG, tool="t", policy=IMPATIENT)

        guards: list[Guard] = []
        guarded = await asyncio.to_thread(asyncio.run, agent())
        assert await asyncio.to_thread(until, lambda: not is_spooled(spool))
        passed = link.passed
        guards[0].close()

    assert guarded.outcome is Outcome.SPOOLED
    assert passed < 1.2 * len(LONG)


async def test_without_a_spool_the_agent_waits_as_long_as_the_bytes_move(service: ServiceProcess) -> None:
    with slow_link.running(service.url, rate=4_000_000) as link, SyncClient(link.url) as client:
        guard = Guard(client, session="no-spool", spool=False)
        guarded = await guard.process(LONG, tool="t", policy=IMPATIENT)
        guard.close()

    assert (guarded.outcome, guarded.reason) == (Outcome.CAPTURED, None)


@pytest.mark.parametrize("when", ["before", "within"])
async def test_an_upload_that_stalls_opens_the_circuit_and_is_sent_later(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(flush_job, "RETRY_SECONDS", 3600.0)  # nobody waits for what another process uploads
    monkeypatch.setattr(health, "FIRST_PAUSE_SECONDS", 1.0)
    spool = Spool(tmp_path / "spool")
    with slow_link.running(service.url, rate=2_000_000) as link, SyncClient(link.url) as client:
        guard = Guard(client, session=f"stalls-{when}", spool=spool)
        link_stops(link, when)
        guarded = await guard.process(LONG if when == "within" else SMALL, tool="t", policy=IMPATIENT)
        link.stop()
        circuit = circuit_of(guard)
        assert await asyncio.to_thread(until, lambda: circuit.is_open)
        link.go()
        assert await asyncio.to_thread(until, lambda: not is_spooled(spool))
        stored = await asyncio.to_thread(client.content, str(guarded.capture))
        guard.close()

    assert guarded.outcome is Outcome.SPOOLED
    assert stored == (LONG if when == "within" else SMALL).encode()


def link_stops(link: SlowLink, when: str) -> None:
    if when == "before":
        link.stop()


async def test_closing_the_guard_cuts_off_what_goes_on_and_leaves_it_in_the_spool(
    service: ServiceProcess, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    with slow_link.running(service.url, rate=500_000) as link:
        client = SyncClient(link.url)
        guard = Guard(client, session="closed", spool=spool)
        guarded = await guard.process(LONG, tool="t", policy=IMPATIENT)
        await guard.aclose()
        is_there = is_spooled(spool)
    client.close()

    assert guarded.outcome is Outcome.SPOOLED
    assert is_there
