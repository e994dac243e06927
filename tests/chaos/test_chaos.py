"""Nothing acknowledged is lost or changed, whatever fails meanwhile. Longer: `python -m tests.chaos`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chaos import schedule
from tests.chaos.run import run
from tests.chaos.stacks import Distributed, Embedded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.ledger import Ledger
    from tests.chaos.stacks import Stack
    from tests.servers.swift import S3Server

SEED = 20261187


async def disturbed(stack: Stack, seconds: float) -> Ledger:
    """The ledger of a run in which each fault is planned at least once."""
    planned = {(each.lane, each.fault) for each in schedule.plan(stack.lanes, seconds, SEED)}
    assert planned == {(lane, fault) for lane, faults in stack.lanes.items() for fault in faults}
    return await run(stack, seconds=seconds, seed=SEED, say=print)


def require_nothing_wrong(ledger: Ledger) -> None:
    """Fail with the whole history of every capture that is not as it must be."""
    assert len(ledger.owed) > 20
    assert not ledger.wrongs, "\n".join(ledger.wrongs)


@pytest.mark.timeout(600)
async def test_the_embedded_service_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    stack = Embedded(tmp_path)
    async with stack.running():
        ledger = await disturbed(stack, seconds=13)

    require_nothing_wrong(ledger)


@pytest.mark.timeout(900)
async def test_replicas_on_s3_and_redis_keep_what_they_acknowledged(
    tmp_path: Path, s3_server: S3Server
) -> None:
    stack = Distributed(tmp_path, s3_server)
    async with stack.running():
        ledger = await disturbed(stack, seconds=22)

    require_nothing_wrong(ledger)
