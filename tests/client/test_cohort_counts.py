"""Counts of guards by cohort: bounded, once, and reported like all other counts."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, Holdout, Outcome, Spool
from overspill.guard.counts.cohorts import CohortTally, MetSessions
from overspill.guard.counts.reporter import Reporter
from overspill.guard.counts.tally import Tally
from overspill.transfer.sync import SyncClient
from overspill.wire import COHORT_LABEL, Arm, Cohort

from tests.client.test_observations import ASKED, client_of, port_of, report
from tests.faults.relay import relaying

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

COHORT = Cohort("e", Arm.HOLDOUT, 3)


def figures(service: ServiceProcess, experiment: str) -> dict[str, int]:
    with SyncClient(service.url) as client:
        rows = [row for row in client.experiments().rows if row.experiment == experiment]
    return rows[0].figures if rows else {}


@pytest.fixture
def cohort(request: pytest.FixtureRequest) -> Cohort:
    return COHORT._replace(experiment=request.node.name[:64])


def test_counts_of_many_threads_add_up_and_are_taken_once() -> None:
    tally = CohortTally()

    def count() -> None:
        for _ in range(1_000):
            tally.add(COHORT, outputs=1, bytes_before=7)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [taken] = tally.drain()

    assert taken.cohort == COHORT
    assert (taken.sums.outputs, taken.sums.bytes_before, taken.sums.bursts) == (4_000, 28_000, 0)
    assert tally.drain() == []


def test_a_session_is_met_once_in_each_experiment() -> None:
    met = MetSessions()

    assert [met.is_new(*each) for each in (("a", "s"), ("b", "s"), ("a", "s"))] == [True, True, False]


def test_sessions_of_any_number_and_length_take_bounded_memory() -> None:
    met = MetSessions(limit=100)
    for number in range(1_000):
        assert met.is_new("e", f"{number}" + "x" * 100_000 * (number < 5))
    assert not met.is_new("e", "999")

    assert len(met._met) == 100


def test_a_forked_child_counts_from_zero_and_knows_the_sessions_that_were_met() -> None:
    tally, met = CohortTally(), MetSessions()
    tally.add(COHORT, outputs=1)
    met.is_new("e", "s")
    child = os.fork()
    if child == 0:  # pragma: no cover  (in the child)
        os._exit(0 if tally.drain() == [] and not met.is_new("e", "s") else 1)
    _, status = os.waitpid(child, 0)

    assert status == 0
    assert len(tally.drain()) == 1


def test_cohorts_are_reported_once_with_the_other_counts(service: ServiceProcess, cohort: Cohort) -> None:
    tally, cohorts = Tally(), CohortTally()
    reporter = Reporter(tally, cohorts)
    with SyncClient(service.url) as client:
        for _ in range(3):
            tally.inline("t").note(300)
            cohorts.add(cohort, outputs=2, sessions=1)
            reporter.send(client)
        reporter.send(client)

    assert figures(service, cohort.experiment) == {"outputs": 6, "sessions": 3}


def test_cohorts_alone_are_reported_too(service: ServiceProcess, cohort: Cohort) -> None:
    cohorts = CohortTally()
    cohorts.add(cohort, bursts=1)
    with SyncClient(service.url) as client:
        Reporter(Tally(), cohorts).send(client)

    assert figures(service, cohort.experiment) == {"bursts": 1}


async def test_a_lost_answer_counts_nothing_twice(service: ServiceProcess, cohort: Cohort) -> None:
    cohorts = CohortTally()
    reporter = Reporter(Tally(), cohorts)
    async with relaying(port_of(service)) as relay:
        with client_of(f"http://127.0.0.1:{relay.port}") as client:
            relay.lose_answers_to(ASKED)
            cohorts.add(cohort, outputs=3)
            await asyncio.to_thread(reporter.send, client)
            unheard = await asyncio.to_thread(figures, service, cohort.experiment)
            cohorts.add(cohort, outputs=4)
            relay.heal()
            await asyncio.to_thread(report, reporter, relay.port)
            found = await asyncio.to_thread(figures, service, cohort.experiment)
            await asyncio.to_thread(client.close)

    assert (unheard, found) == ({"outputs": 3}, {"outputs": 7})


def test_a_spooled_capture_keeps_its_cohort(tmp_path: Path) -> None:
    holdout = Holdout(name="spooled", share=0.5, keep_bytes=0)
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient("http://127.0.0.1:9", session="s") as client,
        Guard(client, spool=spool, holdout=holdout) as guard,
    ):
        made = guard.process_sync("a line of the log\n" * 5_000, tool="t")
    [entry] = [entry for partition in spool.partitions() for entry in partition.entries()]
    cohort = holdout.cohort("s")

    assert made.outcome is Outcome.SPOOLED
    assert cohort is not None
    assert entry.labels[COHORT_LABEL] == cohort.encode()
