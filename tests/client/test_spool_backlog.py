"""The backlog of a spool is reported to the service, and an upload from it says since when it waited."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, Spool, SyncClient, wire
from overspill.guard.counts.reporter import Reporter
from overspill.guard.counts.tally import Tally
from overspill.spools.backlog import backlog_of
from overspill.spools.flush import flush

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.spools.partition import Partition

    from tests.servers.overspill import ServiceProcess

LONG = "a line of the log\n" * 5_000


@pytest.fixture
def partition(nowhere: str, service: ServiceProcess, tmp_path: Path) -> Partition:
    """Two captures that could not be uploaded, in the partition of the service that is there now."""
    spool = Spool(tmp_path / "spool")
    away = SyncClient(nowhere, session=tmp_path.name, retries=0, connect_timeout=0.2)
    with away, Guard(away, spool=spool) as guard:
        for number in range(2):
            guard.process_sync(LONG * (number + 1), tool="make", call_id=f"call_{number}")
    return spool.partition(nowhere, "")


class Told:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.backlogs: list[wire.SpoolBacklog | None] = []

    def observe(self, batch: wire.Observations) -> None:
        self.backlogs.append(batch.backlog)


def test_the_backlog_is_what_waits(partition: Partition) -> None:
    backlog = backlog_of(partition)

    assert backlog is not None
    assert (backlog.captures, backlog.size) == (2, 3 * len(LONG))
    assert backlog.oldest is not None
    assert 0 <= (datetime.now(UTC) - backlog.oldest).total_seconds() < 300
    assert backlog.spool == getattr(backlog_of(partition), "spool", None)


def test_a_spool_that_is_not_there_has_no_backlog(tmp_path: Path) -> None:
    nothing = Spool(tmp_path / "nothing").partition("http://here", "")

    assert backlog_of(None) is backlog_of(nothing) is None


def test_it_is_reported_until_a_report_has_said_that_nothing_waits(
    partition: Partition, service: ServiceProcess
) -> None:
    told = Told()
    reporter = Reporter(Tally(), backlog=partial(backlog_of, partition))
    reporter.send(told)  # type: ignore[arg-type]  # only this method is called
    reporter.send(told)  # type: ignore[arg-type]
    with SyncClient(service.url) as client:
        flush(partition, client)
    reporter.send(told)  # type: ignore[arg-type]
    reporter.send(told)  # type: ignore[arg-type]

    assert [each and each.captures for each in told.backlogs] == [2, 2, 0]


def test_an_upload_says_since_when_it_waited(partition: Partition, service: ServiceProcess) -> None:
    entries = partition.entries()
    with SyncClient(service.url) as client:
        flush(partition, client)
        labels = client.get(entries[0].id).labels

    assert labels[wire.PREVIEW_LABEL] == "preview"
    assert datetime.fromisoformat(labels[wire.SPOOLED_LABEL]) == entries[0].created.replace(microsecond=0)
