"""`stages`: the blocks of a pattern find the lines that the pattern matches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.reading.errors import InvalidPattern
from overspill.reading.long_line import LongSearch
from overspill.reading.re2_patterns import Re2Pattern
from overspill.reading.stages import chains_of


@pytest.mark.parametrize(
    ("pattern", "chains"),
    [
        ("error", (("error",),)),
        ("a|b?", (("a|b?",),)),
        ("^.{80,}$", (("^", ".{80}", "$"),)),
        (".*error.*", (("error",),)),
        (r"\d+ms", ((r"\d{1}ms",),)),
        (r"\s*\w+=", ((r"\w{1}=",),)),
        ("(?i)a.+b|c.*d", (("(?i)a", "(?i).{1}", "(?i)b"), ("(?i)c", "(?i)d"))),
        ("(a.*b)", (("a", "b"),)),
        ("(?:a.*b|c)", (("a", "b"), ("c",))),
        (r"a\.*?", (("a",),)),
        (".*", (("",),)),
    ],
)
def test_a_pattern_is_split_at_its_gaps(pattern: str, chains: tuple[tuple[str, ...], ...]) -> None:
    assert chains_of(pattern) == chains


@pytest.mark.parametrize("pattern", ['"[^"]*"', "a(b+c)*d", r"^\s*x", r"a\Q.*\Eb*", "a(?i)b*c", r"in \d+ ms"])
def test_what_cannot_be_split_is_not(pattern: str) -> None:
    assert chains_of(pattern) is None


ATOM = st.sampled_from(
    ["a", "b", "ab", ".", r"\d", "[^a]", "(ab)", "(a|b)", "(?:ab.*a)", r"\b", "^", "$", "é", "x"]
)
REPEAT = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{2,}", "{0,}"])
PATTERN = st.lists(
    st.one_of(st.tuples(ATOM, REPEAT).map("".join), st.just("|"), st.just(".*")), max_size=6
).map("".join)


@given(PATTERN, st.text("abx7é ", max_size=30), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_blocks_one_behind_the_other_match_what_the_pattern_matches(
    pattern: str, line: str, ignore_case: bool, backwards: bool
) -> None:
    try:
        engine = Re2Pattern.compile(pattern, ignore_case=ignore_case)
    except InvalidPattern:
        return
    data = line.encode()
    search = LongSearch(engine, backwards=backwards, expired=lambda: False)
    found = search.search(data, 0, len(data)) is not None

    assert found == (engine.search(data, 0, len(data)) is not None)


def test_groups_that_nest_deeply_are_not_looked_into() -> None:
    assert chains_of("(" * 900 + "a+b" + ")" * 900) is None
    assert chains_of("(?:" * 9 + "a+b" + ")" * 9) is not None
