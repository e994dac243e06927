"""A guard with a holdout: held-out sessions get another treatment in every way in, and are counted."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard, Holdout, Outcome, Policy, calling, spill_messages_sync
from overspill.guard.bursts import MIN_CALLS
from overspill.transfer.sync import SyncClient
from overspill.wire import COHORT_LABEL, Arm, CohortSums

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.servers.overspill import ServiceProcess

WHOLE = Holdout(name="whole", share=0.5)
LONG = "a line of the log\n" * 5_000  # 90,000 bytes
TOO_LONG = LONG * 3
SHORT = "a line\n"


def session_in(arm: Arm, holdout: Holdout = WHOLE, number: int = 0) -> str:
    """Return a session of this arm."""
    found = [name for name in (f"s{at}" for at in range(100)) if holdout.arm(name) is arm]
    return found[number]


HELD, USUAL = session_in(Arm.HOLDOUT), session_in(Arm.USUAL)


@pytest.fixture
def guard() -> Iterator[Guard]:
    with Guard(spool=False, holdout=WHOLE) as made:
        yield made


def counts(guard: Guard) -> dict[Arm, Counter[str]]:
    """What the guard has counted since the last time, by arm."""
    trial = guard._pipeline.trial
    assert trial is not None
    found: dict[Arm, Counter[str]] = {arm: Counter() for arm in Arm}
    for each in trial.counts.drain():
        for figure in CohortSums.__struct_fields__:
            found[each.arm][figure] += getattr(each.sums, figure)
    return {arm: +figures for arm, figures in found.items()}


# --- every way into the guard -----------------------------------------------------------------------


def by_process(guard: Guard, session: str, text: str) -> Any:
    return guard.process_sync(text, tool="t", session=session).value


def by_call(guard: Guard, session: str, text: str) -> Any:
    with calling("call_1", session=session):
        return guard.process_sync(text, tool="t").value


def by_wrapped_function(guard: Guard, session: str, text: str) -> Any:
    with calling("call_1", session=session):
        return guard.wrap(lambda: text, name="t")()


def by_generator(guard: Guard, session: str, text: str) -> Any:
    def lines() -> Iterator[str]:
        yield from text.splitlines(keepends=True)

    with calling("call_1", session=session):
        return "".join(guard.wrap(lines, name="t")())


def by_stream(guard: Guard, session: str, text: str) -> Any:
    made = guard.process_sync(iter(text.splitlines(keepends=True)), tool="t", session=session)
    return made.value if isinstance(made.value, str) else "".join(made.value)


def by_exception(guard: Guard, session: str, text: str) -> Any:
    def fail() -> None:
        raise ValueError(text)

    with calling("call_1", session=session), pytest.raises(ValueError) as caught:
        guard.wrap(fail, name="t")()
    return str(caught.value)


def by_turn(guard: Guard, session: str, text: str) -> Any:
    with guard.turn(10_000_000):
        return guard.process_sync(text, tool="t", session=session).value


WAYS = [by_process, by_call, by_wrapped_function, by_generator, by_stream, by_exception, by_turn]


@pytest.mark.parametrize("way", WAYS)
def test_held_out_sessions_keep_outputs_whole_in_every_way(guard: Guard, way: Callable[..., Any]) -> None:
    held, usual = way(guard, HELD, LONG), way(guard, USUAL, LONG)

    assert held == LONG
    assert usual.startswith("[overspill NOT STORED]")
    figures = counts(guard)
    assert [figures[arm]["outputs"] for arm in Arm] == [1, 1]
    assert [figures[arm]["oversized"] for arm in Arm] == [1, 1]
    assert [figures[arm]["spilled"] for arm in Arm] == [1, 0]


@pytest.mark.parametrize("way", WAYS)
def test_beyond_the_bound_an_output_spills_as_usual_and_stays_counted_in_its_arm(
    guard: Guard, way: Callable[..., Any]
) -> None:
    held, usual = way(guard, HELD, TOO_LONG), way(guard, USUAL, TOO_LONG)

    assert len(held) == len(usual) < 10_000
    figures = counts(guard)
    assert [figures[arm]["spilled"] for arm in Arm] == [1, 1]
    assert figures[Arm.HOLDOUT]["bytes_after"] == figures[Arm.USUAL]["bytes_after"]


async def test_coroutines_and_asynchronous_streams_are_held_out_too(guard: Guard) -> None:
    async def chunks() -> AsyncIterator[str]:
        for line in LONG.splitlines(keepends=True):
            yield line

    @guard.wrap
    async def run() -> str:
        return LONG

    with calling("call_1", session=HELD):
        assert await run() == LONG
    made = await guard.process(chunks(), tool="t", session=HELD)
    assert "".join([chunk async for chunk in made.value]) == LONG
    assert counts(guard)[Arm.HOLDOUT]["oversized"] == 2


def test_a_history_is_cut_by_the_policy_of_its_sessions_arm(guard: Guard) -> None:
    messages = [{"role": "tool", "tool_call_id": "call_1", "name": "t", "content": LONG}]

    assert spill_messages_sync(messages, guard, session=HELD) == messages
    assert spill_messages_sync(messages, guard, session=USUAL) != messages


def test_another_preview_is_shown_to_held_out_sessions() -> None:
    holdout = Holdout(name="tails", share=0.5, policy=Policy(strategy="TAIL", preview_bytes=100))
    text = "".join(f"line {number}\n" for number in range(20_000))
    with Guard(spool=False, holdout=holdout) as guard:
        held, usual = (
            guard.process_sync(text, tool="t", session=session_in(arm, holdout)).value
            for arm in (Arm.HOLDOUT, Arm.USUAL)
        )

    assert "line 19999\n" in held
    assert "line 0\n" not in held
    assert "line 0\n" in usual


@pytest.mark.parametrize(
    ("limit", "size", "spilling"), [(1_000, 5_000, Arm.HOLDOUT), (90_000, 60_000, Arm.USUAL)]
)
def test_an_output_that_only_one_policy_finds_too_long_spills_in_that_arm(
    limit: int, size: int, spilling: Arm
) -> None:
    holdout = Holdout(name="limits", share=0.5, policy=Policy(max_bytes=limit, preview_bytes=100))
    with Guard(spool=False, holdout=holdout) as guard:
        for arm in Arm:
            guard.process_sync("x" * size, tool="t", session=session_in(arm, holdout))
        figures = counts(guard)

    assert [arm for arm in Arm if figures[arm]["spilled"]] == [spilling]
    assert [figures[arm]["oversized"] for arm in Arm] == [size > guard.policy.max_bytes] * 2


# --- what is counted --------------------------------------------------------------------------------


def test_short_outputs_count_with_their_bytes_and_their_sessions_once(guard: Guard) -> None:
    held = [session_in(Arm.HOLDOUT, number=number) for number in range(20, 25)]

    @guard.wrap
    def run() -> str:
        return SHORT

    for session in held * 3:
        with calling("call", session=session):
            run()
        guard.process_sync(SHORT, tool="t", session=session)

    assert counts(guard) == {
        Arm.USUAL: {},
        Arm.HOLDOUT: {
            "sessions": 5,
            "outputs": 30,
            "bytes_before": 30 * len(SHORT),
            "bytes_after": 30 * len(SHORT),
        },
    }


def test_repetitions_are_counted_in_both_arms_alike(guard: Guard) -> None:
    for session in (HELD, USUAL):
        for _ in range(3):
            guard.process_sync(LONG, tool="t", session=session)
        for _ in range(MIN_CALLS):
            guard.process_sync(SHORT, tool="u", session=session)
        guard.process_sync(LONG, tool="u", session=session)
        for _ in range(MIN_CALLS):
            guard.process_sync(SHORT, tool="u", session=session)
    figures = counts(guard)

    for arm in Arm:
        assert (figures[arm]["identical"], figures[arm]["bursts"]) == (3, 1), arm


def test_outputs_without_a_session_are_in_neither_arm(guard: Guard) -> None:
    assert guard.process_sync(LONG, tool="t").outcome is not Outcome.INLINE
    guard.process_sync(SHORT, tool="t")

    assert counts(guard) == {arm: {} for arm in Arm}


def test_reading_tools_bypassed_outputs_and_explicit_policies_are_no_part(guard: Guard) -> None:
    guard.process_sync(LONG, tool="inspect_output", session=HELD)
    with guard.bypass():
        guard.process_sync(LONG, tool="t", session=HELD)
        guard.process_sync(SHORT, tool="t", session=HELD)
    made = guard.process_sync(LONG, tool="t", session=HELD, policy=guard.policy)
    captured = guard.capture_output_sync(LONG, "t", session=HELD)

    assert made.outcome is not Outcome.INLINE
    assert captured.truncated
    assert counts(guard) == {arm: {} for arm in Arm}


def test_the_usual_counts_are_what_they_are_without_a_holdout() -> None:
    texts = [SHORT] * 5 + [LONG] + [SHORT] * 4
    counted = []
    for holdout in (None, WHOLE):
        with Guard(spool=False, holdout=holdout) as guard:
            for text in texts:
                guard.process_sync(text, tool="t", session=USUAL)
            counted.append(guard.stats)

    assert counted[0] == counted[1]


def test_arms_agree_whichever_guard_or_process_decides(guard: Guard) -> None:
    copy = pickle.loads(pickle.dumps(guard))
    sessions = [f"agent {number}" for number in range(50)]

    assert copy.holdout == guard.holdout
    assert [copy.policy_for(each) for each in sessions] == [guard.policy_for(each) for each in sessions]
    assert {guard.policy_for(each) == guard.policy for each in sessions} == {True, False}


# --- settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": ""}, "name must have"),
        ({"name": "a.b"}, "name must have"),
        ({"name": "a\n"}, "name must have"),
        ({"name": "x" * 65}, "name must have"),
        ({"name": 3}, "name must have"),
        ({"share": 0}, "share must be more than 0"),
        ({"share": 1}, "share must be less than 1"),
        ({"share": 1.5}, "share must be at most 1"),
        ({"share": float("nan")}, "share must be a number"),
        ({"keep_bytes": -1}, "keep_bytes must be 0 or more"),
        ({"keep_bytes": 2**24}, "keep_bytes must be at most"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Holdout(**{"name": "e", **settings})


def test_things_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match="policy must be a Policy"):
        Holdout(name="e", policy=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="holdout must be a Holdout"):
        Guard(holdout=0.05)  # type: ignore[arg-type]


@pytest.mark.parametrize("usual", [Policy(), Policy.clamped(), Policy.token_limited(), Policy.file_based()])
def test_what_is_kept_whole_is_bounded_beside_any_policy(usual: Policy) -> None:
    held_out = Holdout(name="e", keep_bytes=120_000).held_out(usual)

    for tool in ("", "read_file", "grep_search"):
        limits = held_out.limits(tool)
        assert limits.max_bytes == 120_000
        assert limits.max_tokens is limits.max_chars is None


def test_the_label_of_a_capture_names_its_cohort(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, Guard(client, holdout=WHOLE) as guard:
        for session, text in ((HELD, TOO_LONG), (USUAL, LONG)):
            made = guard.process_sync(text, tool="t", session=session)
            cohort = WHOLE.cohort(session)
            assert cohort is not None
            assert client.get(str(made.capture)).labels[COHORT_LABEL] == cohort.encode()
