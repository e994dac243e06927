"""`grep`: what it finds, against a loop over single lines and against ripgrep."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.reading.chunks import Caps
from overspill.reading.errors import InvalidQuery
from overspill.reading.grep import Search
from overspill.wire import GrepQuery, Match, Text

from tests.reading.stored import capture

WIDE = Caps(lines=10**6, size=10**8)
PIECES = [
    b"a",
    b"b",
    b"ab",
    b" ",
    b"\n",
    b"\n\n",
    b"\r\n",
    "é".encode(),
    "É".encode(),
    "€".encode(),
    b"\xff",
    b"\xc3",
    b"\x00",
    b"\r",
]
CONTENT = st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join)
CUTS = st.lists(st.integers(0, 200), max_size=6)
PATTERNS = st.sampled_from(
    [
        "a",
        "b$",
        "^a",
        "^$",
        "",
        "^",
        "$",
        "ab?",
        "[^a]",
        "^.$",
        "^..$",
        "é",
        "a.b",
        r"\bb\b",
        r"\s",
        "a|^b",
        ".",
        "x",
        "€$",
        r"\r",
        "[^b]$",
        r"\x00",
    ]
)
AROUND = st.integers(0, 3)


def engine_of(query: GrepQuery) -> Any:
    """The engine's public interface to the query's pattern."""
    options = re2.Options()
    options.case_sensitive = not query.ignore_case
    options.log_errors = False
    options.literal = query.fixed
    return re2.compile(query.pattern, options)


def naive(content: bytes, query: GrepQuery) -> list[int]:
    """Numbers of the lines wanted, line by line with the engine's public interface."""
    pattern = engine_of(query)
    numbers = []
    lines = shown(content)
    for number, line in enumerate(lines, 1):
        is_last = number == len(lines) and not content.endswith(b"\n")
        texts = {line, line.removesuffix("\r") if is_last else line}
        if any(pattern.search(text) for text in texts) != query.invert:
            numbers.append(number)
    return numbers


def shown(content: bytes) -> list[str]:
    """The lines as they are shown, escape sequences included."""
    *ended, last = content.split(b"\n")
    lines = [line.removesuffix(b"\r") for line in ended] + ([last] if last else [])
    return [line.decode(errors="replace") for line in lines]


@given(CONTENT, CUTS, PATTERNS, st.booleans(), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_lines_found_are_those_of_a_loop_over_single_lines(
    content: bytes,
    cuts: list[int],
    pattern: str,
    fixed: bool,
    ignore_case: bool,
    invert: bool,
    from_end: bool,
) -> None:
    query = GrepQuery(
        pattern=pattern,
        fixed=fixed,
        ignore_case=ignore_case,
        invert=invert,
        from_end=from_end,
        max_matches=1000,
    )
    stored = capture(content, *cuts)
    text = stored.search(Search(query, stored.extent, caps=WIDE))
    expected = naive(content, query)

    assert isinstance(text.matches, list)
    assert [match.line_number for match in text.matches] == (expected[::-1] if from_end else expected)
    assert not text.truncated


def pages(content: bytes, cuts: list[int], query: GrepQuery, **caps: int) -> list[Text]:
    """The answers of a search and of all those that its cursors lead to."""
    stored = capture(content, *cuts)
    texts = [stored.search(Search(query, stored.extent, caps=WIDE._replace(**caps)))]
    while texts[-1].next is not None:
        again = msgspec.structs.replace(query, cursor=texts[-1].next["cursor"])
        texts.append(stored.search(Search(again, stored.extent, caps=WIDE._replace(**caps))))
    return texts


def found(texts: list[Text]) -> list[Match]:
    return [match for text in texts if isinstance(text.matches, list) for match in text.matches]


@given(CONTENT, CUTS, PATTERNS, AROUND, AROUND, st.booleans(), st.booleans())
@settings(deadline=None)
def test_each_match_has_the_lines_around_it_even_across_chunks_and_pages(
    content: bytes, cuts: list[int], pattern: str, before: int, after: int, invert: bool, from_end: bool
) -> None:
    query = GrepQuery(
        pattern=pattern,
        before=before,
        after=after,
        invert=invert,
        from_end=from_end,
        max_matches=2,
        ansi=True,
    )
    lines = shown(content)
    numbers = naive(content, query)

    assert found(pages(content, cuts, query)) == [
        Match(
            line_number=number,
            line=lines[number - 1],
            before=lines[max(0, number - 1 - before) : number - 1],
            after=lines[number : number + after],
        )
        for number in (numbers[::-1] if from_end else numbers)
    ]


@given(CONTENT, CUTS, PATTERNS, st.booleans(), st.integers(1, 60))
@settings(deadline=None)
def test_a_small_byte_cap_only_makes_more_pages(
    content: bytes, cuts: list[int], pattern: str, from_end: bool, size: int
) -> None:
    query = GrepQuery(pattern=pattern, from_end=from_end, context=1)
    numbers = naive(content, query)
    listed = [match.line_number for match in found(pages(content, cuts, query, size=size))]

    assert listed == (numbers[::-1] if from_end else numbers)


@given(CONTENT, CUTS, PATTERNS, st.booleans(), st.booleans())
@settings(deadline=None)
def test_counting_counts_what_listing_lists(
    content: bytes, cuts: list[int], pattern: str, invert: bool, from_end: bool
) -> None:
    query = GrepQuery(pattern=pattern, invert=invert, from_end=from_end, count=True)
    stored = capture(content, *cuts)
    text = stored.search(Search(query, stored.extent))

    assert text.match_count == len(naive(content, query))
    assert text.content == str(text.match_count)
    assert text.matches == []


LONG = st.lists(
    st.sampled_from([b"a", b"needle", b"x" * 3000, b"x" * 40_000, b"\n", b"\r\n", b"\xff"]), max_size=30
).map(b"".join)


@given(LONG, st.lists(st.integers(0, 300_000), max_size=8), st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None)
def test_running_out_of_time_after_every_slice_only_makes_more_pages(
    content: bytes, cuts: list[int], invert: bool, from_end: bool, count: bool
) -> None:
    query = GrepQuery(
        pattern="^needle|needlex|a$", invert=invert, from_end=from_end, max_matches=1000, count=count
    )
    numbers = naive(content, query)
    stored = capture(content, *cuts)
    texts = [stored.search(Search(query, stored.extent, expired=lambda: True))]
    while texts[-1].next is not None:
        again = msgspec.structs.replace(query, cursor=texts[-1].next["cursor"])
        texts.append(stored.search(Search(again, stored.extent, expired=lambda: True)))

    assert sum(text.match_count for text in texts if isinstance(text.match_count, int)) == len(numbers)
    if not count:
        assert [match.line_number for match in found(texts)] == (numbers[::-1] if from_end else numbers)


@pytest.mark.parametrize("from_end", [False, True])
@pytest.mark.parametrize("place", [0, 10_000_000, 19_999_990, 8 * 2**20 - 5, 8 * 2**20 + 3])
def test_a_match_in_a_line_too_long_to_hold_is_found_wherever_it_lies(place: int, from_end: bool) -> None:
    line = bytearray(b"x" * 20_000_000)
    line[place : place + 10] = b"the needle"
    stored = capture(b"one\n" + bytes(line) + b"\nthree\n", *range(500_000, 20_000_000, 500_000))
    query = GrepQuery(pattern="the n[a-e]+dle", from_end=from_end, context=1)
    text = stored.search(Search(query, stored.extent))
    (match,) = found([text])

    assert match.line_number == 2
    assert "the needle" in match.line
    assert len(match.line) < 2100
    assert (match.before, match.after) == (["one"], ["three"])


@pytest.mark.parametrize("from_end", [False, True])
@pytest.mark.parametrize("pattern", ["^y", "y$", "^x", "x$", "xz", "^z", r"\bz", r"z\b"])
def test_anchors_hold_only_at_the_ends_of_a_line_too_long_to_hold(pattern: str, from_end: bool) -> None:
    content = b"y" + b"x" * 9_000_000 + b"z" + b"x" * 9_000_000 + b"y\r\n"
    stored = capture(content, *range(0, 18_000_000, 1_000_000), 9_000_001, 9_000_002)
    text = stored.search(Search(GrepQuery(pattern=pattern, from_end=from_end), stored.extent))

    assert text.match_count == (pattern in {"^y", "y$", "xz"})


RG = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
WORDS = st.lists(
    st.sampled_from(["error", "Error", " ", "é", "É", "42", "{", "\n", "\n", "x.y", "\t", "€"]), max_size=60
).map(lambda words: "".join(words).encode())


def ripgrep(content: bytes, *arguments: str) -> bytes:
    command = [RG, "--no-config", "--color=never", "--text", "--encoding=none", "-n", *arguments, "-"]
    return subprocess.run(command, input=content, capture_output=True, check=False).stdout


@given(
    WORDS,
    CUTS,
    st.sampled_from(["error", "e", "é", r"\d+", "x.y", "r$", "^ ", "[^e]$", "{", "€|4"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    AROUND,
)
@settings(max_examples=60, deadline=None)
def test_the_text_of_an_answer_is_what_ripgrep_prints(
    content: bytes, cuts: list[int], pattern: str, fixed: bool, ignore_case: bool, invert: bool, context: int
) -> None:
    query = GrepQuery(
        pattern=pattern,
        fixed=fixed or pattern == "{",
        ignore_case=ignore_case,
        invert=invert,
        context=context,
        max_matches=1000,
    )
    flags = [flag for flag, on in {"-F": query.fixed, "-i": ignore_case, "-v": invert}.items() if on]
    stored = capture(content, *cuts)
    text = stored.search(Search(query, stored.extent, caps=WIDE))

    assert text.content.encode() == ripgrep(content, *flags, f"-C{context}", "-e", pattern)


@given(WORDS, CUTS, st.sampled_from(["r$", "^$", "^.$", "[^x]$", r"\s$", "r.$"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_lines_that_end_in_crlf_match_as_with_ripgrep_crlf(
    content: bytes, cuts: list[int], pattern: str, invert: bool
) -> None:
    content = content.replace(b"\n", b"\r\n")
    stored = capture(content, *cuts)
    query = GrepQuery(pattern=pattern, invert=invert, max_matches=1000)
    text = stored.search(Search(query, stored.extent, caps=WIDE))
    flags = ["--crlf", "-v"] if invert else ["--crlf"]
    printed = ripgrep(content, *flags, "-e", pattern)

    assert text.content.encode() == printed.replace(b"\r\n", b"\n")


def test_a_full_answer_stops_reading() -> None:
    stored = capture(b"hit\n" * 1000, *range(0, 4000, 100))
    text = stored.search(Search(GrepQuery(pattern="hit", max_matches=3), stored.extent))

    assert (text.start_line, text.end_line, text.truncated, text.next) == (1, 3, True, {"cursor": "f4"})
    assert stored.given == 1


def test_searching_from_the_end_reads_only_the_end() -> None:
    stored = capture(b"".join(b"hit %d\n" % n for n in range(1000)), *range(0, 8000, 100))
    text = stored.search(Search(GrepQuery(pattern="hit", max_matches=2, from_end=True), stored.extent))

    assert [match.line for match in found([text])] == ["hit 999", "hit 998"]
    assert (text.start_line, text.end_line, text.next) == (999, 1000, {"cursor": "r998"})
    assert stored.given == 1


def test_a_cursor_goes_on_at_its_chunk() -> None:
    stored = capture(b"hit\n" * 1000, *range(0, 4000, 100))
    stored.search(Search(GrepQuery(pattern="hit", max_matches=3, cursor="f501"), stored.extent))

    assert stored.given == 2


@pytest.mark.parametrize(
    "cursor", ["x", "4", "f", "f0", "f9", "r2", "f2.", "f2.0", "f1.99", "f٣", "f2.3", "f1.5"]
)
def test_a_cursor_that_no_answer_gave_is_refused(cursor: str) -> None:
    stored = capture(b"one\ntwo\n")
    with pytest.raises(InvalidQuery, match="cursor="):
        stored.search(Search(GrepQuery(pattern="o", cursor=cursor), stored.extent))


def test_a_long_line_is_cut_around_its_match() -> None:
    stored = capture(b"\xe2\x82\xac" * 5000 + b"needle" + b"\xe2\x82\xac" * 5000)
    (match,) = found([stored.search(Search(GrepQuery(pattern="needle"), stored.extent))])

    assert "€needle€" in match.line
    assert match.line[0] == match.line[-1] == "…"
    assert 2000 < len(match.line.encode()) <= 2048 + 2 * len("…".encode())


def test_colours_are_neither_searched_nor_shown_unless_asked_for() -> None:
    stored = capture(b"\x1b[31mERROR\x1b[0m: disk\n")
    plain = stored.search(Search(GrepQuery(pattern="^ERROR: d"), stored.extent))
    raw = stored.search(Search(GrepQuery(pattern=r"\[0m: d", ansi=True), stored.extent))

    assert plain.content == "1:ERROR: disk\n"
    assert raw.content == "1:\x1b[31mERROR\x1b[0m: disk\n"


def test_chunks_may_be_prepared_ahead_in_any_order() -> None:
    stored = capture(b"a hit\nno\n" * 500, *range(0, 4500, 77))
    query = GrepQuery(pattern="hit", max_matches=1000)
    search = Search(query, stored.extent, caps=WIDE)
    with ThreadPoolExecutor(2) as threads:
        for prepared in list(threads.map(search.prepare, stored.chunks)):
            search.take(prepared)

    assert search.answer() == stored.search(Search(query, stored.extent, caps=WIDE))


def test_an_empty_capture_has_no_matches() -> None:
    stored = capture(b"")
    text = stored.search(Search(GrepQuery(pattern=""), stored.extent))

    assert (text.content, text.match_count, text.truncated, text.end_line) == ("", 0, False, 0)


@pytest.mark.parametrize("from_end", [False, True])
def test_a_search_without_time_still_gets_through_a_line_too_long_to_hold(from_end: bool) -> None:
    content = b"one\n" + b"x" * 10_000_000 + b"needle" + b"x" * 10_000_000 + b"\nthe end\n"
    stored = capture(content, *range(500_000, 20_000_000, 500_000))
    query = GrepQuery(pattern="nee.le|end", from_end=from_end)
    texts = [stored.search(Search(query, stored.extent, expired=lambda: True))]
    while texts[-1].next is not None:
        again = msgspec.structs.replace(query, cursor=texts[-1].next["cursor"])
        texts.append(stored.search(Search(again, stored.extent, expired=lambda: True)))

    assert sorted(match.line_number for match in found(texts)) == [2, 3]
    assert len(texts) < 20


def test_the_more_a_pattern_can_cost_the_more_often_the_deadline_is_looked_at() -> None:
    stored = capture(b"x" * 1_000_000)
    cheap = stored.search(Search(GrepQuery(pattern="needle"), stored.extent, expired=lambda: True))
    costly = stored.search(Search(GrepQuery(pattern="[ab]{1000}" * 4), stored.extent, expired=lambda: True))

    assert cheap.next is None
    assert costly.next is not None
    assert int(costly.next["cursor"].partition(".")[2]) < 100_000
