"""The timeline of a live capture's bytes: packed, joined, and asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from overspill_service.live.timeline import MAX_PACKED, Mark, joined, offset_since, pack, unpack

distances = st.lists(st.tuples(st.integers(250, 10**6), st.integers(1, 10**6)), max_size=50)


def marks_of(steps: list[tuple[int, int]]) -> list[Mark]:
    marks = [Mark(1_800_000_000_000, 0)]
    for later, more in steps:
        marks.append(Mark(marks[-1].moment + later, marks[-1].offset + more))
    return marks


@given(distances)
def test_a_packed_timeline_is_the_same(steps: list[tuple[int, int]]) -> None:
    marks = marks_of(steps)

    assert unpack(pack(marks)) == marks
    assert unpack(pack([])) == []


def test_a_long_timeline_loses_every_second_mark_and_stays_small() -> None:
    marks = marks_of([(250 + number * 7919 % 1000, 1 + number * 104729 % 9973) for number in range(50_000)])

    packed = pack(marks)

    assert len(packed) <= MAX_PACKED
    assert unpack(packed)[0] == marks[0]
    assert set(unpack(packed)) < set(marks)


@given(distances)
def test_timelines_join_where_they_overlap(steps: list[tuple[int, int]]) -> None:
    marks = marks_of(steps)
    middle = len(marks) // 2

    assert joined(marks[: middle + 1], marks[middle:]) == marks
    assert joined([], marks) == joined(marks, []) == marks


@given(distances, st.integers(-(10**6), 10**8))
def test_no_byte_that_came_later_is_left_out(steps: list[tuple[int, int]], later: int) -> None:
    marks = marks_of(steps)
    size = marks[-1].offset + 10
    moment = marks[0].moment + later

    offset = offset_since(marks, moment / 1000, size)

    after = [mark.offset for mark in marks if mark.moment > moment]
    assert offset <= min(after, default=size)
    assert not after or offset >= max((mark.offset for mark in marks if mark.moment <= moment), default=0)


def test_long_after_the_last_byte_nothing_came_since() -> None:
    marks = marks_of([(1000, 10), (1000, 10)])

    assert offset_since(marks, marks[-1].moment / 1000 + 60, 25) == 25
