"""One run of chaos: agents at work, faults on schedule, then peace and the reckoning."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from overspill.transfer.client import Client

from tests.chaos import reckoning, schedule
from tests.chaos.ledger import Ledger
from tests.chaos.traffic import TIMEOUT, Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.chaos.schedule import Strike
    from tests.chaos.stacks import Stack

AGENTS: Final = 8
MIN_PEACE: Final = 1.0
"""Seconds from the mending of one fault to the next one of its lane, at least."""


async def run(stack: Stack, *, seconds: float, seed: int, say: Callable[[str], object]) -> Ledger:
    """Disturb `stack`, which runs, for so long; the ledger says in `wrongs` what was not as it must be."""
    ledger = Ledger()
    async with AsyncExitStack() as opened:
        clients = [
            await opened.enter_async_context(Client(each.url, timeout=TIMEOUT, retries=0))
            for each in stack.services
        ]
        agents = [Agent(ledger, clients, f"session-{number}", seed) for number in range(AGENTS)]
        await _disturb(stack, agents, schedule.plan(stack.lanes, seconds, seed), say)
        await reckoning.settle(ledger, clients, [agent.session for agent in agents])
    say(ledger.summary())
    return ledger


async def _disturb(
    stack: Stack, agents: Sequence[Agent], strikes: Sequence[Strike], say: Callable[[str], object]
) -> None:
    """Let the agents work until every fault has struck and is mended."""
    say("\n".join(map(str, strikes)))
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(agent.run())
        start = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as faults:
            for lane in stack.lanes:
                faults.create_task(_strike_all(stack, [each for each in strikes if each.lane == lane], start))
        for agent in agents:
            agent.stop()


async def _strike_all(stack: Stack, strikes: Sequence[Strike], start: float) -> None:
    """Strike as planned, but later where the last fault took long to mend: between two there is peace."""
    loop = asyncio.get_running_loop()
    for strike in strikes:
        await asyncio.sleep(max(start + strike.at - loop.time(), MIN_PEACE))
        if loop.time() > start + strikes[-1].at + strikes[-1].lasts:
            return
        async with stack.lanes[strike.lane][strike.fault]():
            await asyncio.sleep(strike.lasts)
