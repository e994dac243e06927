import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.guard.counts.tally import OTHER_TOOLS, OutputCount, Tally
from overspill.wire import SIZE_BOUNDS, SIZE_CLASSES, Outcome

from tests.client.shell import run_code


def sizes_of(tally: Tally, outcome: Outcome) -> dict[int | None, int]:
    """How many outputs there were up to which bound; None for those above all."""
    (count,) = (count for (_, found), count in tally.counts().items() if found is outcome)
    return {bound: number for bound, number in zip((*SIZE_BOUNDS, None), count.sizes, strict=True) if number}


def test_counts_add_up_by_tool_and_outcome() -> None:
    tally = Tally()
    tally.add("a", Outcome.CAPTURED, 100, 10)
    tally.add("a", Outcome.CAPTURED, 50, 5)
    tally.add("b", Outcome.TRUNCATED, 9, 9)

    assert tally.counts() == {
        ("a", Outcome.CAPTURED): OutputCount(2, 150, 15),
        ("b", Outcome.TRUNCATED): OutputCount(1, 9, 9),
    }


def test_inline_outputs_count_with_their_bytes() -> None:
    tally = Tally()
    for _ in range(3_000):
        tally.inline("a").note(3)

    assert tally.counts() == {("a", Outcome.INLINE): OutputCount(3_000, 9_000, 9_000)}


def test_invented_tool_names_do_not_grow_the_tally_without_end() -> None:
    tally = Tally()
    for number in range(2_000):
        tally.inline(f"tool_{number}").note(1)
        tally.add(f"tool_{number}", Outcome.TRUNCATED, 1, 1)
    counts = tally.counts()

    assert len(counts) < 1_200
    assert counts[OTHER_TOOLS, Outcome.INLINE].count + counts[OTHER_TOOLS, Outcome.TRUNCATED].count > 2_000
    assert sum(count.count for count in counts.values()) == 4_000


def test_no_count_is_lost_between_threads() -> None:
    tally = Tally()

    def note() -> None:
        for _ in range(5_000):
            tally.inline("a").note(1)

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert tally.counts() == {("a", Outcome.INLINE): OutputCount(20_000, 20_000, 20_000)}


def test_sizes_are_counted_up_to_and_including_each_bound() -> None:
    tally = Tally()
    for size in (0, 256, 257, 1_024, 4**15, 4**15 + 1):
        tally.add("a", Outcome.CAPTURED, size, 0)

    assert sizes_of(tally, Outcome.CAPTURED) == {256: 2, 1_024: 2, 4**15: 1, None: 1}


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=50))
def test_inline_sizes_are_classed_as_all_others_are(sizes: list[int]) -> None:
    tally = Tally()
    for size in sizes:
        tally.inline("a").note(size)
        tally.add("a", Outcome.CAPTURED, size, 0)

    assert sizes_of(tally, Outcome.INLINE) == sizes_of(tally, Outcome.CAPTURED)


def test_counts_can_be_subtracted_and_added() -> None:
    earlier = OutputCount(1, 10, 5, (1,) + (0,) * (SIZE_CLASSES - 1))
    later = OutputCount(3, 1_000, 6, (2, 1) + (0,) * (SIZE_CLASSES - 2))

    assert later - earlier + earlier == later
    assert (later - earlier).sizes == (1, 1) + (0,) * (SIZE_CLASSES - 2)
    assert (later - earlier + earlier).sizes == later.sizes


def test_names_that_are_only_ever_spilled_are_bounded_too() -> None:
    tally = Tally()
    for number in range(2_000):
        tally.add(f"tool_{number}", Outcome.TRUNCATED, 1, 1)

    assert len(tally.counts()) == 501
    assert tally.counts()[OTHER_TOOLS, Outcome.TRUNCATED].count == 1_500


def test_a_long_tool_name_is_kept_short_and_apart_from_others() -> None:
    tally = Tally()
    for name in ("x" * 10_000, "x" * 10_001, "\ud800"):
        tally.add(name, Outcome.CAPTURED, 1, 1)
        tally.inline(name).note(1)

    names = {tool for tool, _ in tally.counts()}
    assert len(names) == 3
    assert max(len(name.encode()) for name in names) <= 256


def test_outputs_that_did_not_stay_inline_are_counted_apart() -> None:
    tally = Tally()
    for outcome in Outcome:
        tally.add("a", outcome, 1, 1)

    assert tally.spilled == 3


FORKING = """
import os
from overspill.guard.counts.tally import Tally
from overspill.wire import Outcome

tally = Tally()
note = tally.inline("a").note
note(6)
tally.add("a", Outcome.CAPTURED, 1, 1)
tally._lock.acquire()  # as if another thread were counting
child = os.fork()
if child == 0:
    note(5)
    counts = {key: count.count for key, count in tally.counts().items()}
    os._exit(0 if counts == {("a", Outcome.INLINE): 1} and tally.spilled == 0 else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_counts_from_zero() -> None:
    assert run_code(FORKING).returncode == 0
