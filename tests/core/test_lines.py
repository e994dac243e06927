"""`lines`: numbers, cuts and continuations, against plain slicing of the whole content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill_service import lines
from overspill_service.chunks import Caps, Extent
from overspill_service.errors import InvalidParameter

from tests.core.stored import capture, split

CAPS = Caps(lines=5, size=40)


CONTENT = st.lists(
    st.sampled_from([b"a", b"bc", b"\n", b"\r\n", "é€😀".encode(), b"x" * 30]), max_size=40
).map(b"".join)
CUTS = st.lists(st.integers(0, 2000), max_size=8)


@given(CONTENT, CUTS, st.integers(1, 60), st.integers(0, 12))
def test_following_next_to_the_end_gives_the_stored_lines_without_a_seam(
    content: bytes, cuts: list[int], start: int, more: int
) -> None:
    stored = capture(content, *cuts)
    wanted = b"".join(split(content)[start - 1 : start + more])
    query = {"start": str(start), "end": str(start + more)}
    got = b""
    while query:
        text = stored.read(
            lines.between(
                int(query["start"]),
                int(query["end"]),
                stored.extent,
                offset=int(query.get("offset", "0")),
                caps=CAPS,
                ansi=True,
            )
        )
        assert len(text.content.encode()) <= CAPS.size
        assert text.truncated == (text.next is not None)
        got += text.content.encode()
        query = text.next or {}

    assert got == wanted


@given(CONTENT, CUTS, st.integers(1, 20))
def test_a_tail_is_the_end_of_the_content_and_next_reads_what_is_missing(
    content: bytes, cuts: list[int], count: int
) -> None:
    stored = capture(content, *cuts)
    text = stored.read(lines.tail(count, stored.extent, caps=CAPS, ansi=True))
    asked = b"".join(split(content)[-count:])
    given = text.content.encode()

    assert content.endswith(given)
    assert text.truncated == (given != asked)
    assert text.end_line == stored.extent.lines
    assert text.end_line - text.start_line + 1 == len(split(given))


def test_a_line_of_many_chunks_is_entered_by_offset_without_reading_it() -> None:
    stored = capture(b"one\n" + b"x" * 1000 + b"\nthree\n", *range(0, 1010, 10))
    text = stored.read(lines.between(2, 2, stored.extent, offset=700, caps=CAPS))

    assert text.content == "x" * 40
    assert text.next == {"start": "2", "offset": "740", "end": "2"}
    assert stored.given <= 7


def test_an_offset_beyond_its_line_is_refused() -> None:
    stored = capture(b"one\ntwo\n")
    with pytest.raises(InvalidParameter, match="beyond the end of line 1"):
        stored.read(lines.between(1, 1, stored.extent, offset=4))


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="end=3 is before start=4"):
        lines.between(4, 3, Extent(10, 5))


def test_a_start_beyond_the_last_line_gives_an_empty_answer() -> None:
    stored = capture(b"one\n")
    text = stored.read(lines.between(7, None, stored.extent))

    assert (text.content, text.start_line, text.end_line, text.truncated) == ("", 7, 6, False)
