import threading

from overspill.tally import OTHER_TOOLS, Count, Tally
from overspill.wire import Outcome


def test_counts_add_up_by_tool_and_outcome() -> None:
    tally = Tally()
    tally.add("a", Outcome.CAPTURED, 100, 10)
    tally.add("a", Outcome.CAPTURED, 50, 5)
    tally.add("b", Outcome.TRUNCATED, 9, 9)

    assert tally.counts() == {
        ("a", Outcome.CAPTURED): Count(2, 150, 15),
        ("b", Outcome.TRUNCATED): Count(1, 9, 9),
    }


def test_inline_outputs_count_with_their_bytes() -> None:
    tally = Tally()
    for _ in range(3_000):
        tally.inline("a").note("né")

    assert tally.counts() == {("a", Outcome.INLINE): Count(3_000, 9_000, 9_000)}


def test_invented_tool_names_do_not_grow_the_tally_without_end() -> None:
    tally = Tally()
    for number in range(2_000):
        tally.inline(f"tool_{number}").note("x")
        tally.add(f"tool_{number}", Outcome.TRUNCATED, 1, 1)
    counts = tally.counts()

    assert len(counts) < 1_200
    assert counts[OTHER_TOOLS, Outcome.INLINE].count + counts[OTHER_TOOLS, Outcome.TRUNCATED].count > 2_000
    assert sum(count.count for count in counts.values()) == 4_000


def test_no_count_is_lost_between_threads() -> None:
    tally = Tally()

    def note() -> None:
        for _ in range(5_000):
            tally.inline("a").note("x")

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert tally.counts() == {("a", Outcome.INLINE): Count(20_000, 20_000, 20_000)}
