from __future__ import annotations

import asyncio
import contextvars
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.guard.decisions import Earlier
from overspill.guard.gain import NOTICE_BYTES
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.guard.turn import PendingResult, Turn, choose_spills, current, notice_limits
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.examination import examine
from overspill.spools.store_request import Origin
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

OWNER = object()
NOTICE = 300
LATER = 10
"""Rounds of the event loop within which everything has happened that can happen."""

pending_results = st.lists(
    st.builds(
        PendingResult,
        size=st.integers(0, 2_000),
        notice_bytes=st.none() | st.integers(1, 600),
        exceeds=st.booleans(),
        call_id=st.sampled_from(["", "call_0", "call_1"]),
        shortest_notice_bytes=st.none(),
    ).filter(lambda each: each.notice_bytes is not None or not each.exceeds),
    max_size=8,
)


def pending(size: int, call_id: str = "") -> PendingResult:
    return PendingResult(size, NOTICE, call_id=call_id)


def total(results: Sequence[PendingResult], spills: Sequence[bool]) -> int:
    return sum(each.cost(spills=spill) for each, spill in zip(results, spills, strict=True))


async def settle() -> None:
    for _ in range(LATER):
        await asyncio.sleep(0)


async def played(budget: int, results: Sequence[PendingResult], order: Sequence[int]) -> list[bool]:
    """What is decided where all calls start together and have their results in this order."""
    gates = [asyncio.Event() for _ in results]

    async def call(number: int) -> bool:
        with turn.calling() as running:
            await gates[number].wait()
            return await running.decide(results[number]) is not None

    async with asyncio.timeout(30), Turn(budget, OWNER) as turn:
        calls = [asyncio.create_task(call(number)) for number in range(len(results))]
        await settle()
        for number in order:
            gates[number].set()
            await settle()
        return await asyncio.gather(*calls)


def test_the_largest_spill_first_and_no_more_than_needed() -> None:
    results = [pending(5_000), pending(40_000), pending(9_000), pending(20_000)]

    assert choose_spills(results, 80_000) == [False, False, False, False]
    assert choose_spills(results, 73_999) == [False, True, False, False]
    assert choose_spills(results, 20_000) == [False, True, False, True]


def test_among_equals_the_call_id_and_then_the_order_decide() -> None:
    assert choose_spills([pending(1_000, "b"), pending(1_000, "a")], 1_500) == [False, True]
    assert choose_spills([pending(1_000), pending(1_000)], 1_500) == [True, False]


def test_what_spilling_would_not_shrink_is_never_spilled_for_the_budget() -> None:
    assert choose_spills([pending(size) for size in (NOTICE, NOTICE - 1, NOTICE + 1)], 0) == [
        False,
        False,
        True,
    ]


def test_what_must_not_spill_counts_and_the_others_spill_in_its_place() -> None:
    assert choose_spills([PendingResult(90_000), pending(5_000)], 50_000) == [False, True]


def test_what_exceeds_its_own_limits_spills_and_counts_as_its_notice() -> None:
    results = [PendingResult(90_000, NOTICE, exceeds=True), pending(5_000)]

    assert choose_spills(results, 5_300) == [
        True,
        False,
    ]
    assert choose_spills(results, 5_299) == [True, True]


@given(pending_results, st.integers(0, 8_000))
def test_the_budget_holds_wherever_it_can(results: list[PendingResult], room: int) -> None:
    spills = choose_spills(results, room)

    least = total(results, [each.exceeds or each.saved > 0 for each in results])
    assert total(results, spills) <= max(room, least)


@given(pending_results, st.integers(0, 8_000))
def test_nothing_spills_for_the_budget_without_need(results: list[PendingResult], room: int) -> None:
    spills = choose_spills(results, room)

    chosen = [number for number, each in enumerate(results) if spills[number] and not each.exceeds]
    if chosen:
        smallest = min(results[number].size for number in chosen)
        last = [number for number in chosen if results[number].size == smallest]
        assert any(total(results, [s and i != at for i, s in enumerate(spills)]) > room for at in last)
        assert all(spills[i] for i, each in enumerate(results) if each.size > smallest and each.saved > 0)


@given(pending_results, st.integers(0, 8_000), st.integers(0, 300))
def test_notices_share_what_there_is_room_for(results: list[PendingResult], room: int, least: int) -> None:
    results = [
        each
        if each.notice_bytes is None
        else each._replace(shortest_notice_bytes=min(least, each.notice_bytes))
        for each in results
    ]
    allowed = notice_limits(results, room)

    taken = [each.size if most is None else most for each, most in zip(results, allowed, strict=True)]
    short = [each.shortened() for each in results]
    fewest = total(short, [each.exceeds or each.saved > 0 for each in short])
    assert sum(taken) <= max(room, fewest)
    for each, most in zip(results, allowed, strict=True):
        assert most is None or (each.shortest_notice_bytes or 0) <= most <= (each.notice_bytes or 0)


def test_notices_are_as_long_as_ever_where_that_is_enough() -> None:
    results = [PendingResult(10_000, 3_000, shortest_notice_bytes=1_000)] * 3

    assert notice_limits(results, 23_000) == [3_000, None, None]
    assert notice_limits(results, 9_000) == [3_000, 3_000, 3_000]
    assert notice_limits(results, 8_000) == [2_666, 2_666, 2_666]
    assert notice_limits([PendingResult(2_000, 3_000, shortest_notice_bytes=1_000)] * 3, 5_000) == [
        1_000,
        None,
        None,
    ]
    assert notice_limits(results, 1_000) == [1_000, 1_000, 1_000]


@settings(max_examples=60, deadline=None)
@given(pending_results, st.integers(0, 8_000), st.randoms(use_true_random=False))
def test_which_spill_does_not_depend_on_who_is_ready_first(
    results: list[PendingResult], budget: int, chance: random.Random
) -> None:
    order = list(range(len(results)))
    chance.shuffle(order)

    assert asyncio.run(played(budget, results, order)) == choose_spills(results, budget)


async def test_among_equals_the_one_that_was_called_first_spills() -> None:
    equals = [pending(9_000)] * 3

    assert await played(20_000, equals, [2, 1, 0]) == [True, False, False]


def in_threads(budget: int, results: Sequence[PendingResult], order: Sequence[int]) -> list[bool]:
    """As `played`, each call in a thread of its own."""
    everyone = threading.Barrier(len(results))
    turns = [threading.Event() for _ in results]

    def call(number: int) -> bool:
        with turn.calling() as running:
            everyone.wait(30)
            place = order.index(number)
            turns[place].wait(30)
            if place + 1 < len(turns):
                turns[place + 1].set()
            return running.decide_sync(results[number]) is not None

    turns[0].set()
    with Turn(budget, OWNER) as turn, ThreadPoolExecutor(len(results)) as pool:
        return list(pool.map(call, range(len(results))))


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)))
def test_threads_share_a_budget_in_the_same_way(order: list[int]) -> None:
    results = [pending(5_000), pending(40_000), pending(9_000), pending(20_000)]

    assert in_threads(20_000, results, order) == [False, True, False, True]


async def test_a_tool_that_never_awaits_is_counted_with_its_siblings() -> None:
    async def call(size: int) -> bool:
        with turn.calling() as running:
            return await running.decide(pending(size)) is not None

    async with Turn(15_000, OWNER) as turn:
        spills = await asyncio.gather(*map(call, (9_000, 8_000, 10_000)))

    assert spills == [True, False, True]


async def test_calls_one_after_another_are_decided_at_once() -> None:
    async def call(size: int) -> bool:
        with turn.calling() as running:
            return await running.decide(pending(size)) is not None

    async with Turn(15_000, OWNER) as turn:
        spills = [await call(size) for size in (10_000, 6_000, 4_000, 5_000)]

    assert spills == [False, True, False, True]
    assert turn.used == 10_000 + NOTICE + 4_000 + NOTICE


def test_calls_one_after_another_need_no_event_loop() -> None:
    spills = []
    with Turn(15_000, OWNER) as turn:
        for size in (10_000, 6_000, 4_000):
            with turn.calling() as running:
                spills.append(running.decide_sync(pending(size)) is not None)

    assert spills == [False, True, False]


async def failing(turn: Turn) -> None:
    with turn.calling():
        raise LookupError


async def stuck(turn: Turn) -> None:
    with turn.calling():
        await asyncio.Event().wait()


async def stuck_with_a_result(turn: Turn) -> None:
    with turn.calling() as running:
        await running.decide(pending(90_000))


async def deciding(turn: Turn, size: int) -> bool:
    with turn.calling() as running:
        return await running.decide(pending(size)) is not None


async def test_a_failing_tool_keeps_nobody_waiting() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        _, spills = await asyncio.gather(failing(turn), deciding(turn, 9_000), return_exceptions=True)

    assert spills is False


async def test_a_cancelled_tool_keeps_nobody_waiting() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        other = asyncio.create_task(stuck(turn))
        waiting = asyncio.create_task(deciding(turn, 9_000))
        await settle()
        was_waiting = not waiting.done()
        other.cancel()

        assert (was_waiting, await waiting) == (True, False)


async def test_a_result_that_is_cancelled_while_it_waits_takes_no_room() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        running = asyncio.create_task(stuck(turn))
        waiting = asyncio.create_task(stuck_with_a_result(turn))
        other = asyncio.create_task(deciding(turn, 14_000))
        await settle()
        waiting.cancel()
        running.cancel()

        assert await other is False
    assert turn.used == 14_000


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["returns", "raises", "cancelled"]), st.integers(0, 9_000)), max_size=8
    ),
    st.randoms(use_true_random=False),
)
def test_nothing_ever_waits_for_calls_that_have_ended_in_any_way(
    ends: list[tuple[str, int]], chance: random.Random
) -> None:
    async def play() -> list[bool | BaseException]:
        gates = [asyncio.Event() for _ in ends]

        async def call(number: int) -> bool:
            with turn.calling() as running:
                await gates[number].wait()
                if ends[number][0] == "raises":
                    raise LookupError
                return await running.decide(pending(ends[number][1])) is not None

        async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
            calls = [asyncio.create_task(call(number)) for number in range(len(ends))]
            await settle()
            for number in chance.sample(range(len(ends)), len(ends)):
                calls[number].cancel() if ends[number][0] == "cancelled" else gates[number].set()
                await settle()
            return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(play())

    sizes = [size for end, size in ends if end == "returns"]
    assert [each for each in results if isinstance(each, bool)] == choose_spills(
        [pending(size) for size in sizes], 15_000
    )


async def test_calls_inside_a_call_take_no_part() -> None:
    async def inner() -> Turn | None:
        return current(OWNER)

    async with Turn(15_000, OWNER) as turn:
        outside = await asyncio.create_task(inner())
        with turn.calling() as running:
            inside = [current(OWNER), await inner(), await asyncio.create_task(inner())]
            await running.decide(pending(1))
        after = current(OWNER)

    assert (outside, inside, after) == (turn, [None, None, None], turn)
    assert current(OWNER) is None


async def test_another_guards_calls_take_no_part() -> None:
    other = object()
    async with Turn(15_000, OWNER) as turn, Turn(5_000, other) as second:
        assert (current(OWNER), current(other), current(object())) == (turn, second, None)
        with turn.calling():
            assert (current(OWNER), current(other)) == (None, second)


async def test_a_turn_within_a_turn_has_a_budget_of_its_own() -> None:
    async with Turn(15_000, OWNER) as outer:
        with outer.calling():
            async with Turn(5_000, OWNER) as inner:
                assert current(OWNER) is inner
                await deciding(inner, 4_000)
            assert current(OWNER) is None

        assert current(OWNER) is outer
    assert (inner.used, outer.used) == (4_000, 0)


async def test_the_end_of_the_turn_decides_for_those_that_still_wait() -> None:
    async with asyncio.timeout(30):
        async with Turn(15_000, OWNER) as turn:
            running = asyncio.create_task(stuck(turn))
            waiting = [asyncio.create_task(deciding(turn, size)) for size in (9_000, 8_000)]
            await settle()

        assert await asyncio.gather(*waiting) == [True, False]
        running.cancel()


async def test_a_call_that_outlives_its_turn_is_decided_at_once() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        calls = [turn.calling(), turn.calling()]
        for call in calls:
            call.__enter__()
    async with asyncio.timeout(30):
        spills = await calls[0].decide(pending(16_000)) is not None
    for call in calls:
        call.__exit__()

    assert spills is True
    assert current(OWNER) is None


async def test_a_call_that_takes_too_long_is_waited_for_once() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER, timeout=0) as turn:
        slow = asyncio.create_task(stuck(turn))
        await settle()
        first = await deciding(turn, 9_000)
        turn._state.timeout = 3_600
        second = await deciding(turn, 8_000)
        slow.cancel()

    assert (first, second) == (False, True)


def test_a_thread_waits_no_longer_than_its_timeout() -> None:
    with Turn(15_000, OWNER, timeout=0) as turn, turn.calling(), turn.calling() as running:
        assert running.decide_sync(pending(9_000)) is None


async def test_a_synchronous_tool_in_the_event_loop_holds_up_nobody() -> None:
    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        other = asyncio.create_task(deciding(turn, 9_000))
        slow = asyncio.create_task(stuck(turn))
        await settle()
        with turn.calling() as running:
            spills = running.decide_sync(pending(14_000)) is not None
        slow.cancel()

        assert (spills, await other) == (False, True)


async def test_tasks_and_threads_share_one_budget() -> None:
    has_result = asyncio.Event()
    loop = asyncio.get_running_loop()

    def in_thread() -> bool:
        turn = current(OWNER)
        assert turn is not None
        with turn.calling() as running:
            loop.call_soon_threadsafe(has_result.set)
            return running.decide_sync(pending(9_000)) is not None

    async def in_task() -> bool:
        with turn.calling() as running:
            await has_result.wait()
            return await running.decide(pending(8_000)) is not None

    async with asyncio.timeout(30), Turn(15_000, OWNER) as turn:
        spills = await asyncio.gather(in_task(), asyncio.to_thread(in_thread))

    assert tuple(spills) == (False, True)


def test_a_thread_takes_part_with_a_copy_of_the_context() -> None:
    def find() -> Turn | None:
        return current(OWNER)

    with Turn(15_000, OWNER) as turn, ThreadPoolExecutor(1) as pool:
        assert pool.submit(contextvars.copy_context().run, find).result() is turn
        assert pool.submit(find).result() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_takes_no_part_in_its_parents_turn() -> None:
    with Turn(15_000, OWNER):
        child = os.fork()
        if child == 0:
            os._exit(0 if current(OWNER) is None else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("outcome", [Outcome.CAPTURED, Outcome.SPOOLED, Outcome.TRUNCATED])
def test_no_notice_takes_more_than_it_is_counted_as(outcome: Outcome) -> None:
    content = examine("".join(f"{number}: {number**9} €\n" for number in range(9_000)))
    assert content is not None
    spill = Spill.of(content, Policy(), Origin("€" * 500, "call", "session"))
    notice = spill.notice(
        StoreResult(outcome=outcome, expires=datetime.now(UTC), reason="€ " * 500),
        earlier=Earlier("cap_" + "a" * 20, 0),
    )

    assert len(str(notice).encode()) - len(notice.preview.encode()) <= NOTICE_BYTES


@pytest.mark.parametrize(
    ("result", "times"),
    [("x" * 3_500, 19), ({"k": '"' * 30_000}, 12), ("line é\n" * 700, 19), ([{"text": "\\" * 9_000}], 12)],
    ids=["short texts", "dicts of quotes", "lines", "lists"],
)
async def test_what_goes_into_the_conversation_keeps_to_the_budget(result: object, times: int) -> None:
    guard = Guard()
    async with guard.turn(30_000) as turn:
        calls = (guard.process(result, tool="t", call_id=str(number)) for number in range(times))
        guarded = await asyncio.gather(*calls)

    assert sum(each.bytes_after for each in guarded) <= turn.used <= 30_000


def test_a_turn_is_entered_once() -> None:
    turn = Turn(15_000, OWNER)
    with turn:
        pass

    with pytest.raises(RuntimeError, match="entered once"):
        turn.__enter__()


@pytest.mark.parametrize("budget", [-1, float("nan"), "60000", None])
def test_a_budget_that_is_no_number_of_bytes_is_refused(budget: Any) -> None:
    with pytest.raises(ValueError, match=f"0 or more, not {budget!r}"):
        Turn(budget, OWNER)


async def test_a_turn_may_end_in_another_context_than_it_began() -> None:
    turn = Turn(15_000, OWNER)
    begin: Callable[[], Coroutine[None, None, Turn]] = turn.__aenter__
    await asyncio.create_task(begin())
    await turn.__aexit__(None, None, None)

    assert current(OWNER) is None
