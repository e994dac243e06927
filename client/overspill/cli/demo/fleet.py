"""A simulated fleet: agents of three tenants whose tools return outputs of all sizes, for a minute."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from overspill.cli.demo import page
from overspill.cli.demo.outputs import TOOLS
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.guard.guard import Guard
from overspill.transfer.client import Client
from overspill.wire import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.cli.demo.service import DemoService

AGENTS: Final = {"payments": 8, "search": 7, "data-platform": 5}
"""How many agents each tenant has."""
SECONDS: Final = 60.0
_PAUSE: Final = 1.5
"""Seconds between two calls of an agent, on average."""
_SPREAD: Final = 1.3
"""Sizes are log-normal with this sigma: most outputs are small, and few are very large."""
_CALLS: Final = 4, 10
"""Calls of one conversation: at least and at most."""
_READ_SHARE: Final = 0.45
"""Of captures, how many their agent reads back."""
_MAX_LINES: Final = 60_000


def run(service: DemoService, folder: Path, seconds: float = SECONDS) -> str:
    """Run the fleet against the demo's service, whose data is in `folder`, and print what it came to.

    Return the key of one tenant. Raises `CommandFailure`.
    """
    page.say(f"{sum(AGENTS.values())} agents of {len(AGENTS)} tenants work for {seconds:.0f} seconds.")
    keys = {tenant: _make_key(folder, tenant) for tenant in AGENTS}
    totals = asyncio.run(_work(service.url, keys, seconds))
    page.title("What it came to")
    page.say(f"  {'tenant':<16} {'outputs':>8} {'too large':>10} {'returned':>14} {'in conversations':>17}")
    for tenant, (outputs, spilled, before, after) in totals.items():
        page.say(f"  {tenant:<16} {outputs:>8,} {spilled:>10,} {before:>14,} {after:>17,}")
    return keys[next(iter(AGENTS))]


def _make_key(folder: Path, tenant: str) -> str:
    """Make a key of a tenant, as an operator does."""
    command = [sys.executable, "-m", "overspill_service", "keys", "create", "--tenant", tenant]
    done = subprocess.run(  # noqa: S603  (our own service)
        [*command, "--data", str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        raise CommandFailure(f"no key could be made: {done.stderr.strip()[-500:]}", ExitCode.FAILED)
    return done.stdout.strip()


async def _work(url: str, keys: dict[str, str], seconds: float) -> dict[str, tuple[int, int, int, int]]:
    """Let all agents work. Return each tenant's outputs, those too large, and bytes before and after."""
    until = time.monotonic() + seconds
    guards: dict[str, Guard] = {}
    async with AsyncExitStack() as stack:
        for tenant, key in keys.items():
            client = await stack.enter_async_context(Client(url, key=key))
            guards[tenant] = await stack.enter_async_context(Guard(client))
        async with asyncio.TaskGroup() as agents:
            for tenant, count in AGENTS.items():
                for number in range(1, count + 1):
                    agents.create_task(_agent(guards[tenant], f"{tenant}-run-{number}", until))
        return {tenant: _totals(guard) for tenant, guard in guards.items()}


async def _agent(guard: Guard, name: str, until: float) -> None:
    """Have one conversation after the other until the time is over."""
    chance = random.Random(name)  # noqa: S311  (a simulation, the same each time)
    conversation = 0
    while time.monotonic() < until:
        conversation += 1
        for number in range(1, chance.randint(*_CALLS) + 1):
            await _call(guard, f"{name}-{conversation}", f"call_{number}", chance)
            await asyncio.sleep(chance.expovariate(1 / _PAUSE))
            if time.monotonic() > until:
                break


async def _call(guard: Guard, session: str, call_id: str, chance: random.Random) -> None:
    """Call a tool, and now and then read what was captured."""
    tool, (produce, usual) = chance.choice(list(TOOLS.items()))
    lines = min(_MAX_LINES, max(1, round(usual * chance.lognormvariate(-0.8, _SPREAD))))
    output = await asyncio.to_thread(produce, chance, lines)
    shown = await guard.process(output, tool=tool, call_id=call_id, session=session)
    is_stored = shown.outcome is Outcome.CAPTURED  # on a busy machine some wait in the spool
    if is_stored and shown.capture and chance.random() < _READ_SHARE:
        await _read_back(guard, shown.capture, chance)


async def _read_back(guard: Guard, capture: str, chance: random.Random) -> None:
    client: Any = guard.client
    if chance.random() < 0.6:  # noqa: PLR2004  (most agents search)
        await client.grep(capture, "FAILED|ERROR|refund", max_matches=20)
    else:
        await client.tail(capture, 40)


def _totals(guard: Guard) -> tuple[int, int, int, int]:
    counts = guard.stats.items()
    return (
        sum(count.count for _, count in counts),
        sum(count.count for (_, outcome), count in counts if outcome != "inline"),
        sum(count.bytes_before for _, count in counts),
        sum(count.bytes_after for _, count in counts),
    )
