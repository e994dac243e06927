"""`lines`: numbers, cuts and continuations, against plain slicing of the whole content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.reading import lines
from overspill.reading.chunks import Caps, Extent
from overspill.reading.errors import InvalidQuery

from tests.reading.stored import capture, split

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
    with pytest.raises(InvalidQuery, match="beyond the end of line 1"):
        stored.read(lines.between(1, 1, stored.extent, offset=4))


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="end=3 is before start=4"):
        lines.between(4, 3, Extent(10, 5))


def test_a_start_beyond_the_last_line_gives_an_empty_answer() -> None:
    stored = capture(b"one\n")
    text = stored.read(lines.between(7, None, stored.extent))

    assert (text.content, text.start_line, text.end_line, text.truncated) == ("", 7, 6, False)


def test_the_first_lines_end_where_they_were_asked_to() -> None:
    stored = capture(b"one\r\ntwo\r\nthree\r\n", 4)
    text = stored.read(lines.head(2, stored.extent))

    assert (text.content, text.start_line, text.end_line, text.truncated) == ("one\r\ntwo\r\n", 1, 2, False)


def test_more_lines_than_the_cap_are_read_on_by_next() -> None:
    stored = capture(b"x\n" * 12)
    text = stored.read(lines.head(9, stored.extent, caps=CAPS))

    assert (text.end_line, text.truncated, text.next) == (5, True, {"start": "6", "end": "9"})


def test_a_line_longer_than_the_cap_is_cut_at_a_character() -> None:
    stored = capture("€".encode() * 20)
    text = stored.read(lines.head(1, stored.extent, caps=CAPS))

    assert (text.content, text.next) == ("€" * 13, {"start": "1", "offset": "39", "end": "1"})


def test_a_tail_of_one_long_line_shows_its_end() -> None:
    stored = capture(b"one\n" + b"x" * 1000 + b"end\n", *range(0, 1000, 10))
    text = stored.read(lines.tail(2, stored.extent, caps=CAPS))

    assert text.content == "x" * 36 + "end\n"
    assert (text.start_line, text.end_line, text.next) == (2, 2, {"start": "1", "end": "2"})
    assert stored.given <= 6


def test_bytes_that_are_not_utf8_do_not_make_an_answer_larger_than_the_cap() -> None:
    stored = capture(b"\xff" * 100)
    text = stored.read(lines.head(1, stored.extent, caps=CAPS))

    assert text.replaced
    assert len(text.content.encode()) <= CAPS.size
    assert text.next == {"start": "1", "offset": "13", "end": "1"}


def test_colours_go_unless_they_are_asked_for() -> None:
    stored = capture(b"\x1b[31mred\x1b[0m\n")

    assert stored.read(lines.head(1, stored.extent)).content == "red\n"
    assert stored.read(lines.head(1, stored.extent, ansi=True)).content == "\x1b[31mred\x1b[0m\n"


def test_an_empty_capture_has_no_lines() -> None:
    stored = capture(b"")

    assert stored.read(lines.head(5, stored.extent)).end_line == 0
    assert stored.read(lines.tail(5, stored.extent)).content == ""
