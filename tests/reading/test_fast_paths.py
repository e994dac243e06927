"""Short cuts of searches change no answer, with the extra `fast` and without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.reading import re2_patterns
from overspill.reading.errors import InvalidPattern
from overspill.reading.finder import IS_AVAILABLE, Finder
from overspill.reading.grep import Search
from overspill.reading.literals import Literals, literals_of
from overspill.reading.re2_patterns import Re2Pattern
from overspill.wire import GrepQuery

from tests.reading.stored import capture
from tests.reading.test_grep import CUTS, WIDE, naive

WORDS = [
    "error",
    "ERRor",
    "disk",
    "DISK",
    "ask",
    "Kelvin",
    "\u212aelvin",
    "di\u017fk",
    "abcabc",
    "abc",
    "a",
    " ",
]
ODD = [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\xff", b"\xc5", "é".encode(), b"\x1b[1m", b"\x00"]
CONTENT = st.lists(st.sampled_from([word.encode() for word in WORDS] + ODD), max_size=60).map(b"".join)
TEXT = st.sampled_from(["error", "disk", "ask", "kelvin", "abc", "sk e", "a.k", "r\\.r", "a-b", "Disk$"])
ATOM = st.one_of(
    TEXT,
    st.sampled_from(
        [
            ".",
            ".*",
            r"\d+",
            "[ak]",
            "[^k]",
            r"[\]x]",
            "a?",
            "k+",
            "s*",
            "(?:disk)?",
            "(error)+",
            "a{2,3}",
            "^",
        ]
    ),
    st.sampled_from([r"\b", "(x|ask)", "(?P<n>dis)k", r"\x41", r"\pL", r"\Qd.\E", "(?i)err", "$", "|", "|"]),
)
PATTERN = st.lists(ATOM, min_size=1, max_size=5).map("".join)


@contextmanager
def only_the_engine() -> Iterator[None]:
    with patch.object(re2_patterns, "IS_AVAILABLE", new=False):
        yield


def valid(pattern: str, **how: bool) -> Re2Pattern | None:
    try:
        return Re2Pattern.compile(pattern, **how)
    except InvalidPattern:
        return None


@given(PATTERN, st.booleans(), st.lists(st.sampled_from([*WORDS, ".", "-", "x", "é"]), max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_line_that_matches_has_one_of_the_texts_read_off_the_pattern(
    pattern: str, ignore_case: bool, words: list[str]
) -> None:
    line = "".join(words)
    literals = literals_of(pattern, fixed=False, ignore_case=ignore_case)
    with only_the_engine():
        engine = valid(pattern, ignore_case=ignore_case)
    if literals is None or engine is None or (literals.needs_ascii and not line.isascii()):
        return
    flags = re.IGNORECASE if literals.ignore_case else 0
    has_one = any(re.search(re.escape(text), line, flags) for text in literals.texts)
    matches = engine.search(line.encode(), 0, len(line.encode())) is not None

    assert has_one or not matches
    assert matches or not (has_one and literals.is_whole)


@pytest.mark.parametrize(
    ("pattern", "texts", "is_whole"),
    [
        ("error", ("error",), True),
        ("(error|failed)", ("error", "failed"), True),
        ("(?:error|failed)", ("error", "failed"), True),
        (r"a\.b\-c", ("a.b-c",), True),
        (r"took \d+ ms rows=9\d$", (" ms rows=9",), False),
        (r"\bwarn(?:ings?)?\b|deprecat(?:ed|ion)", ("warn", "deprecat"), False),
        ("abcd?ef", ("abc",), False),
        ("abcd+efg", ("abcd",), False),
        ("ab(cdef|gh)ijk", ("ijk",), False),
    ],
)
def test_the_longest_text_that_each_alternative_needs_is_found(
    pattern: str, texts: tuple[str, ...], is_whole: bool
) -> None:
    assert literals_of(pattern, fixed=False, ignore_case=False) == Literals(texts, False, is_whole)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "ab",
        "error|",
        "error|ab",
        "(error)?",
        "err(?i)or",
        r"\x41bcd",
        r"\Qerror\E",
        r"\pLabc",
        "naïve",
        "a{,2}bcd",
    ],
)
def test_a_pattern_that_needs_no_text_or_is_hard_to_read_has_none(pattern: str) -> None:
    assert literals_of(pattern, fixed=False, ignore_case=False) is None


QUERY = st.builds(
    GrepQuery,
    pattern=st.one_of(PATTERN, TEXT, st.just("(error|disk|abc)"), st.sampled_from(["", "^", "$", ".*"])),
    fixed=st.booleans(),
    ignore_case=st.booleans(),
    invert=st.booleans(),
    from_end=st.booleans(),
    count=st.booleans(),
    max_matches=st.just(1000),
)


@given(CONTENT, CUTS, QUERY)
@settings(max_examples=200, deadline=None)
def test_the_answer_is_that_of_the_engine_alone(content: bytes, cuts: list[int], query: GrepQuery) -> None:
    if valid(query.pattern, fixed=query.fixed) is None:
        return
    stored = capture(content, *cuts)
    fast = stored.search(Search(query, stored.extent, caps=WIDE))
    with only_the_engine():
        slow = stored.search(Search(query, stored.extent, caps=WIDE))

    assert fast == slow


@given(CONTENT, CUTS, st.sampled_from(["", "^", "$", ".*"]), st.booleans(), st.booleans(), st.integers(1, 9))
@settings(deadline=None)
def test_every_line_is_counted_without_reading_one(
    content: bytes, cuts: list[int], pattern: str, invert: bool, from_end: bool, line: int
) -> None:
    stored = capture(content, *cuts)
    cursor = f"{'r' if from_end else 'f'}{min(line, stored.extent.lines)}" if content else None
    query = GrepQuery(pattern=pattern, invert=invert, from_end=from_end, count=True, cursor=cursor)
    listed = GrepQuery(pattern=pattern, invert=invert, from_end=from_end, max_matches=1000, cursor=cursor)
    counted = stored.search(Search(query, stored.extent))
    given = stored.given
    expected = stored.search(Search(listed, stored.extent, caps=WIDE)).match_count

    assert counted.match_count == expected
    assert invert or given == 0


@pytest.mark.skipif(not IS_AVAILABLE, reason="the extra `fast` is not installed")
@given(CONTENT, st.lists(st.sampled_from(["error", "disk", "ask", "abc", "bca"]), min_size=1), st.booleans())
@settings(deadline=None)
def test_the_finder_counts_the_lines_that_a_loop_counts(
    content: bytes, texts: list[str], ignore_case: bool
) -> None:
    finder = Finder(Literals(tuple(texts), ignore_case, is_whole=True))
    lines = content.split(b"\n")
    folded = [line.lower() if ignore_case else line for line in lines]
    expected = [any(text.encode() in line for text in texts) for line in folded]
    first = finder.first(content, 0, len(content))

    assert finder.count(content, 0, len(content)) == (sum(expected), len(content) + 1)
    assert (content.count(b"\n", 0, first) if first >= 0 else -1) == (
        expected.index(True) if any(expected) else -1
    )


@pytest.mark.skipif(not IS_AVAILABLE, reason="the extra `fast` is not installed")
def test_the_finder_leaves_lines_full_of_the_texts_to_the_engine() -> None:
    content = b"abc\n" * 5 + b"abc" * 1000 + b"\nabc\n"

    assert Finder(Literals(("abc",), False, is_whole=True)).count(content, 0, len(content)) == (6, 3021)


@pytest.mark.parametrize("invert", [False, True])
def test_a_line_full_of_what_is_counted_is_counted_once(invert: bool) -> None:
    content = b"abc" * 30_000 + b"\nno\r\n" + b"\xffabc" * 50 + b"\n" + b"abc" * 20_000 + b"\nno"
    stored = capture(content, 120_000)
    text = stored.search(Search(GrepQuery(pattern="abc", count=True, invert=invert), stored.extent))

    assert text.match_count == (2 if invert else 3)


@pytest.mark.parametrize("from_end", [False, True])
def test_a_costly_pattern_goes_through_many_slices(from_end: bool) -> None:
    content = b"".join(b"line %d of this\n" % n for n in range(40_000))
    query = GrepQuery(pattern="(of this|[ab]{900})", from_end=from_end, max_matches=1000)
    stored = capture(content, 300_000)
    numbers = naive(content, query)
    text = stored.search(Search(query, stored.extent, caps=WIDE))

    assert isinstance(text.matches, list)
    assert [match.line_number for match in text.matches] == (numbers[::-1] if from_end else numbers)[:1000]
