"""The guard under trio, and under anyio's trio back end: as under asyncio."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from overspill import Guard, Policy, Spool, SyncClient
from overspill.wire import Outcome

from tests.client.scripted import scripted_in_thread, silence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

trio: Any = pytest.importorskip("trio")

LONG: Final = "a line of text\n" * 10_000


def run_anyio(work: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(work, backend="trio")


@pytest.mark.parametrize("run", [trio.run, run_anyio], ids=["trio", "anyio"])
def test_outputs_are_stored_and_can_be_read(service: ServiceProcess, run: Callable[..., Any]) -> None:
    async def agent(guard: Guard) -> list[Any]:
        @guard.wrap
        async def tool() -> str:
            return LONG

        async def chunks() -> AsyncIterator[str]:
            for _ in range(10):
                yield LONG[:15_000]

        def lines() -> Iterator[str]:
            yield from LONG.splitlines(keepends=True)

        small = await guard.process("small", tool="t")
        guarded = [await guard.process(each, tool="t") for each in (LONG, chunks(), lines())]
        output = await guard.capture_output(LONG, "t")
        async with guard.turn(100_000):
            in_turn = await tool()
        await guard.aclose()
        return [small, *guarded, output.capture, in_turn]

    with SyncClient(service.url, session="trio") as client:
        small, *guarded, capture, in_turn = run(functools.partial(agent, Guard(client, Policy(wait=60))))
        stored = [client.content(each.capture) for each in guarded]

    assert small.value == "small"
    assert [each.outcome for each in guarded] == [Outcome.CAPTURED] * 3
    assert stored == [LONG.encode()] * 3
    assert capture is not None
    assert in_turn.startswith("[overspill")


def test_without_a_service_they_are_spooled(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with SyncClient("http://127.0.0.1:1", retries=0) as client:
        guard = Guard(client, spool=spool)
        guarded = trio.run(functools.partial(guard.process, LONG, tool="t"))
        again = asyncio.run(guard.process(LONG, tool="t"))

    assert [guarded.outcome, again.outcome] == [Outcome.SPOOLED] * 2


def test_a_cancelled_agent_is_cancelled(tmp_path: Path) -> None:
    async def agent() -> bool:
        with trio.move_on_after(0.05) as scope:
            await guard.process(LONG, tool="t", policy=Policy(wait=600))
        return bool(scope.cancelled_caught)

    with scripted_in_thread(silence) as silent, SyncClient(silent.url, retries=0) as client:
        guard = Guard(client, spool=Spool(tmp_path / "spool"))

        assert trio.run(agent)
