"""A guard's reports about its notices: bursts of calls, identical outputs, tokens, the kind of preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from overspill import Guard, Policy, Spool, wire
from overspill.guard.bursts import MIN_CALLS, WINDOW_SECONDS, Bursts
from overspill.guard.call_context import calling
from overspill.guard.counts.tally import OutputCount
from overspill.transfer.sync import SyncClient
from overspill.wire import Outcome

from tests.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LONG = "a line of the log\n" * 5_000


# --- bursts ---------------------------------------------------------------------------------------


def calls(bursts: Bursts, number: int, session: str = "one", tool: str = "grep") -> list[bool]:
    return [bursts.add_output(session, tool) for _ in range(number)]


def test_calls_soon_after_a_notice_are_a_burst_which_counts_once() -> None:
    bursts = Bursts()
    assert calls(bursts, 10) == [False] * 10
    bursts.add_notice("one", "grep")

    assert calls(bursts, MIN_CALLS + 5) == [False] * (MIN_CALLS - 1) + [True] + [False] * 5


def test_other_sessions_and_tools_complete_no_burst() -> None:
    bursts = Bursts()
    bursts.add_notice("one", "grep")

    assert not any(calls(bursts, 10, session="two") + calls(bursts, 10, tool="ls"))
    assert any(calls(bursts, MIN_CALLS))


def test_calls_long_after_a_notice_are_no_burst() -> None:
    clock = Clock()
    bursts = Bursts(clock)
    bursts.add_notice("one", "grep")
    assert not any(calls(bursts, MIN_CALLS - 1))
    clock.now += WINDOW_SECONDS + 1

    assert not any(calls(bursts, 10))


def test_a_notice_amid_a_burst_does_not_begin_it_again() -> None:
    bursts = Bursts()
    bursts.add_notice("one", "grep")
    calls(bursts, MIN_CALLS - 1)
    bursts.add_notice("one", "grep")

    assert calls(bursts, 1) == [True]


def test_the_sessions_of_a_fleet_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill.guard.bursts._MAX_FOLLOWED", 100)
    bursts = Bursts()
    for number in range(1_000):
        bursts.add_notice(f"session {number}", "grep")

    assert not any(calls(bursts, MIN_CALLS, session="session 0"))
    assert any(calls(bursts, MIN_CALLS, session="session 999"))


# --- through a guard ------------------------------------------------------------------------------


@pytest.fixture
def guard(service: ServiceProcess, tmp_path: Path) -> Iterator[Guard]:
    with SyncClient(service.url) as client, Guard(client, session=str(tmp_path)) as made:
        yield made


def counted(guard: Guard, tool: str) -> OutputCount:
    """What the guard has counted of a tool, whatever became of its outputs."""
    counts = guard._pipeline.tally.counts()
    return sum((count for (name, _), count in counts.items() if name == tool), OutputCount())


def by_process(guard: Guard) -> Callable[[str], object]:
    return lambda text: guard.process_sync(text, tool="grep")


def by_wrapped_function(guard: Guard) -> Callable[[str], object]:
    return guard.wrap(lambda text: text, name="grep")


def by_given_session(guard: Guard) -> Callable[[str], object]:
    return lambda text: guard.process_sync(text, tool="grep", session="another")


def by_call(guard: Guard) -> Callable[[str], object]:
    def run(text: str) -> object:
        with calling("call", session="a third"):
            return guard.process_sync(text, tool="grep")

    return run


@pytest.mark.parametrize("way", [by_process, by_wrapped_function, by_given_session, by_call])
def test_short_outputs_soon_after_a_notice_are_counted_as_a_burst(
    guard: Guard, way: Callable[[Guard], Callable[[str], object]]
) -> None:
    run = way(guard)
    for _ in range(5):
        run("short")
    run(LONG)
    assert counted(guard, "grep").bursts == 0
    for _ in range(MIN_CALLS + 2):
        run("short")

    assert counted(guard, "grep").bursts == 1
    assert counted(guard, "grep").count == 5 + 1 + MIN_CALLS + 2


def test_short_outputs_of_another_session_are_no_burst(guard: Guard) -> None:
    guard.process_sync(LONG, tool="grep", session="one")
    for _ in range(10):
        guard.process_sync("short", tool="grep", session="two")

    assert counted(guard, "grep").bursts == 0


def test_an_output_that_comes_again_is_counted_as_identical(guard: Guard) -> None:
    first = guard.process_sync(LONG, tool="grep", call_id="one")
    again = guard.process_sync(LONG, tool="grep", call_id="two")
    same_call = guard.process_sync(LONG, tool="grep", call_id="one")

    assert (first.same_as, again.same_as, same_call.same_as) == (None, first.capture, None)
    assert counted(guard, "grep").identical == 1


def test_an_output_that_comes_a_third_time_is_only_pointed_at(guard: Guard) -> None:
    shown = [guard.process_sync(LONG, tool="grep", call_id=call) for call in ("one", "two", "two", "three")]
    first, again, shown_again, third = (str(each.value) for each in shown)

    assert again == shown_again
    assert "--- preview ---" in first
    assert "--- preview ---" in again
    assert "--- preview ---" not in third
    assert "You got these bytes 3 times now, so no preview" in third
    assert third.count(str(shown[0].capture)) == 1
    assert str(shown[-1].capture) in third
    assert len(third) < len(again) < len(LONG)


def test_a_guard_that_does_not_name_identical_outputs_always_shows_them(guard: Guard) -> None:
    quiet = Guard(guard.client, Policy(identical=False), spool=guard.spool)
    shown = [quiet.process_sync(LONG, tool="grep", call_id=f"quiet {number}") for number in range(4)]

    assert all("--- preview ---" in str(each.value) for each in shown)


def test_the_tokens_that_stay_out_are_about_those_of_what_was_cut(guard: Guard) -> None:
    made = guard.process_sync(LONG, tool="grep")
    whole = guard.policy.counter().count(LONG, len(LONG)).tokens

    assert made.notice is not None
    assert made.notice.tokens == whole
    assert 0.8 * whole < made.tokens_kept_out < whole
    assert counted(guard, "grep").tokens_kept_out == made.tokens_kept_out
    assert guard.process_sync("short", tool="ls").tokens_kept_out == 0


@pytest.mark.parametrize("kind", wire.PreviewKind)
def test_a_capture_says_which_kind_of_preview_its_notice_shows(
    service: ServiceProcess, tmp_path: Path, kind: wire.PreviewKind
) -> None:
    policy = Policy(strategy=kind.name)
    with SyncClient(service.url) as client, Guard(client, policy=policy, session=str(tmp_path)) as guard:
        made = guard.process_sync(LONG, tool="grep")
        assert made.outcome is Outcome.CAPTURED
        assert made.capture is not None

        assert client.get(made.capture).labels[wire.PREVIEW_LABEL] == kind


def test_a_spooled_capture_says_so_too(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with SyncClient("http://127.0.0.1:9") as client, Guard(client, spool=spool) as guard:
        made = guard.process_sync(LONG, tool="grep")
        assert made.outcome is Outcome.SPOOLED
        assert made.capture is not None

        [entry] = [entry for partition in spool.partitions() for entry in partition.entries()]
        assert entry.labels[wire.PREVIEW_LABEL] == "preview"
