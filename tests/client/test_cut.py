"""Cutting is judged by the `regex` package's own notion of a character (UAX 29) and by arithmetic."""

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews import cut, excerpt
from overspill.previews.cut import ENDS, HEAD, TAIL, Strategy
from overspill.previews.excerpt import Excerpt
from overspill.reading.chunks import Extent
from overspill.text import encoding, measure
from overspill.text.body import FileBody
from overspill.text.buffer import Buffer
from overspill.text.limits import UNLIMITED, Limits, exceeds
from overspill.text.measure import extent_of
from overspill.text.sanitize import sanitize
from overspill.text.tokens import TokenCounter

CHARACTERS = [
    *(
        "a",
        "b ",
        "é",
        "漢",
        "😀",
        "\n",
        "\r\n",
        "e\u0301",
        "👩\u200d👩\u200d👧\u200d👦",
        "👍🏽",
        "🇩🇪",
        "❤\ufe0f",
    ),
    *("한", "\u1112\u1161\u11ab", "\udc80", "\ud83d", "\t", "🏴\U000e0067\U000e0062\U000e007f"),
]
TEXT = st.lists(st.sampled_from(CHARACTERS), max_size=300).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\r\x1b[m👩\u200d\u0301"))
STRATEGIES = st.sampled_from([HEAD, TAIL, ENDS, HEAD._replace(spare=0.2), Strategy("mostly head", 0.8)])
LIMITS = st.builds(
    Limits,
    st.integers(0, 400),
    st.integers(0, 30) | st.just(UNLIMITED),
    st.none() | st.integers(0, 300),
    st.none() | st.integers(0, 200),
    st.sampled_from([None, TokenCounter(chars_per_token=4), TokenCounter(lambda text: text.split(" "))]),
)


def of(text: str) -> Excerpt:
    return excerpt.excerpt_of_text(text)


def boundaries(text: str) -> set[int]:
    """Where the `regex` package sees one character end and the next begin."""
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


@given(ANY_TEXT, LIMITS, STRATEGIES)
def test_no_limit_is_ever_exceeded_by_what_is_kept(text: str, limits: Limits, strategy: Strategy) -> None:
    kept = cut.cut(of(text), limits, strategy)

    for part in (kept.head, kept.tail):
        assert not exceeds(part, limits)
    assert measure.size(kept.head) + measure.size(kept.tail) <= limits.max_bytes
    assert measure.count_lines(kept.head) + measure.count_lines(kept.tail) <= limits.max_lines
    assert limits.max_chars is None or len(kept.head) + len(kept.tail) <= limits.max_chars


@given(TEXT, LIMITS, STRATEGIES)
def test_no_character_is_ever_broken(text: str, limits: Limits, strategy: Strategy) -> None:
    kept = cut.cut(of(text), limits, strategy)

    assert {len(kept.head), len(text) - len(kept.tail)} <= boundaries(text)


@given(ANY_TEXT, LIMITS, STRATEGIES)
def test_head_and_tail_are_the_texts_own_and_what_is_omitted_is_counted_exactly(
    text: str, limits: Limits, strategy: Strategy
) -> None:
    kept = cut.cut(of(text), limits, strategy)
    middle = text[len(kept.head) : len(text) - len(kept.tail)]

    assert kept.head + middle + kept.tail == text
    assert kept.omitted.size == len(encoding.encode(middle))
    assert kept.omitted.lines == len(re.findall(r"[^\n]*\n|[^\n]+\Z", middle))


@given(ANY_TEXT, LIMITS, STRATEGIES)
def test_the_same_text_is_always_cut_alike(text: str, limits: Limits, strategy: Strategy) -> None:
    assert cut.cut(of(text), limits, strategy) == cut.cut(of(text), limits, strategy)


@given(ANY_TEXT, st.integers(0, 300), STRATEGIES)
def test_limits_hold_for_what_is_shown_where_that_differs(text: str, size: int, strategy: Strategy) -> None:
    kept = cut.cut(of(text), Limits(size), strategy, sanitize)

    assert len((sanitize(kept.head) + sanitize(kept.tail)).encode()) <= size


def test_a_text_within_the_limits_is_kept_whole() -> None:
    assert cut.cut(of("one\ntwo\n"), Limits(8, 2), HEAD) == ("one\ntwo\n", "", Extent(0, 0))


@pytest.mark.parametrize(
    ("strategy", "head", "tail"),
    [(HEAD, "1\n2\n3\n4\n", ""), (TAIL, "", "6\n7\n8\n9\n"), (ENDS, "1\n2\n", "8\n9\n")],
)
def test_each_strategy_keeps_its_end(strategy: Strategy, head: str, tail: str) -> None:
    text = "".join(f"{number}\n" for number in range(1, 10))

    assert cut.cut(of(text), Limits(100, 4), strategy) == (head, tail, Extent(10, 5))


def test_the_line_cap_comes_first() -> None:
    text = "a\n" * 3 + "b" * 100

    assert cut.cut(of(text), Limits(50, 2), HEAD).head == "a\na\n"


def test_what_the_head_leaves_unused_goes_to_the_tail() -> None:
    text = "a\n" + "漢" * 10

    assert cut.cut(of(text), Limits(11), ENDS) == ("a\n漢", "漢漢", Extent(21, 1))


def test_a_cut_goes_back_to_the_end_of_a_line_only_where_that_costs_little() -> None:
    near, far = HEAD._replace(spare=0.5), HEAD._replace(spare=0.1)

    assert cut.cut(of("abcdef\nghij\nkl"), Limits(10), near).head == "abcdef\n"
    assert cut.cut(of("abcdef\nghij\nkl"), Limits(10), far).head == "abcdef\nghi"


@pytest.mark.parametrize("strategy", [HEAD, TAIL, ENDS])
def test_of_a_long_file_only_the_ends_are_needed(strategy: Strategy) -> None:
    text = "".join(f"line {number} 漢\n" for number in range(600_000))
    gathering = Buffer(memory_bytes=0)
    gathering.write(text)
    filed = gathering.finish()
    assert isinstance(filed, FileBody)
    found = excerpt.excerpt_of_body(filed, extent_of(filed), 4_000)
    assert found is not None
    assert not found.is_whole

    assert cut.cut(found, Limits(1_000, 20), strategy) == cut.cut(of(text), Limits(1_000, 20), strategy)
