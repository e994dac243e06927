"""Tenants begin their requests in turns, one in each iteration of the event loop."""

from __future__ import annotations

import asyncio

from overspill_service.resources.loop_turns import LoopTurns


class Requests:
    """Requests that note the order in which they begin, and in which iteration of the loop."""

    def __init__(self) -> None:
        self.turns = LoopTurns()
        self.begun: list[str] = []
        self.iterations: list[int] = []
        self._iteration = 0

    async def one(self, tenant: str) -> None:
        await self.turns.take(tenant)
        self.begun.append(tenant)
        self.iterations.append(self._iteration)

    async def run(self, *tenants: str) -> None:
        tasks = [asyncio.create_task(self.one(tenant)) for tenant in tenants]
        while not all(task.done() for task in tasks):
            self._iteration += 1
            await asyncio.sleep(0)


async def test_a_quiet_tenant_comes_before_the_many_requests_of_another() -> None:
    requests = Requests()
    await requests.run(*["loud"] * 20, "quiet", *["loud"] * 20)

    assert requests.begun.index("quiet") == 2  # the first one had begun, the second one had its turn


async def test_tenants_that_wait_take_turns() -> None:
    requests = Requests()
    await requests.run(*"aaabbbccc")

    assert "".join(requests.begun) == "aabcabcbc"


async def test_no_two_requests_begin_in_the_same_iteration() -> None:
    requests = Requests()
    await requests.run(*["loud"] * 20)

    assert len(set(requests.iterations)) == 20


async def test_who_is_alone_does_not_wait() -> None:
    turns = LoopTurns()
    for _ in range(3):
        turn = turns.take("alone")
        try:
            turn.send(None)
        except StopIteration:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        else:
            raise AssertionError("it waits")


async def test_a_request_that_is_given_up_takes_no_turn() -> None:
    requests = Requests()
    given_up = [asyncio.create_task(requests.one("gone")) for _ in range(20)]
    last = asyncio.create_task(requests.one("last"))
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await asyncio.wait_for(last, 10)

    assert requests.begun == ["gone", "last"]  # the first one had begun already
