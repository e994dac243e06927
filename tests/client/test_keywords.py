"""One pass over a text finds the words that a search for each would find."""

import os
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews import search_set, words
from overspill.previews.folding import comparable, masked
from overspill.previews.keywords import Keywords, members
from overspill.previews.presence import present_in_pieces, present_words
from overspill.previews.rule import at_word
from overspill.previews.rules import RULES

TEXTS = st.text("abc .\n", max_size=40)
WORDS = st.lists(st.text("abc .", min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@given(WORDS, TEXTS)
def test_all_words_of_a_text_are_found_also_those_that_overlap(known: list[str], text: str) -> None:
    keywords = Keywords(map(str.encode, known))

    found = {word.encode() for word in known if word in text}
    assert keywords.among(text.encode()) == keywords.among_without_re2(text.encode()) == found


def test_without_re2_only_the_words_that_a_text_has_are_searched_for_others() -> None:
    keywords = Keywords([b"error", b"err", b"failed", b"fail"])
    keywords.among_without_re2(b"an error, and no more errors")

    assert keywords._parts == {b"error": [b"error", b"err"]}


@given(st.sets(st.integers(0, 200)))
def test_the_members_of_a_set_of_numbers_are_its_numbers_the_smallest_first(numbers: set[int]) -> None:
    assert list(members(sum(1 << number for number in numbers))) == sorted(numbers)


@pytest.mark.parametrize("word", [*words.STRONG, *words.USUAL, *words.WEAK])
def test_a_word_that_begins_a_piece_of_a_text_is_present(word: bytes) -> None:
    assert word in present_words(b"a line\nof " + word + b" and more\n")


KNOWN: list[bytes] = [*words.STRONG, *words.USUAL, *words.WEAK]
PARTS = st.sampled_from(
    [*KNOWN, *(word[:3] for word in KNOWN), b"un", b"7", b" ", b"\x0b", b"\n", b":", b"\xa0"]
)


@given(st.lists(PARTS, max_size=12).map(b"".join))
def test_one_pass_of_re2_finds_the_words_that_are_found_without_it(data: bytes) -> None:
    found = [word for word in present_in_pieces(data) if word in data]

    assert present_words(data) == found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_searches_with_an_automaton_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    whole = search_set._compiled

    def counted(patterns: Iterable[bytes]) -> object:
        made.append(os.getpid())
        return whole(patterns)

    present_words(b"an error")
    monkeypatch.setattr(search_set, "_compiled", counted)
    child = os.fork()
    if child == 0:
        is_right = present_words(b"an error") == [b"error"] and os.getpid() in made
        os._exit(0 if is_right else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert present_words(b"an error") == [b"error"]
    assert not made


def test_of_a_text_without_any_word_few_are_looked_for() -> None:
    assert len(present_words(b"compile alpha beta in 12 ms\n" * 100)) < 4


def test_a_rule_has_its_words_in_lower_case_unless_it_is_exact() -> None:
    inexact = [word for rule in RULES if not rule.is_exact for word in rule.words]

    assert inexact == [word.lower() for word in inexact]


@given(st.text("aber _.", max_size=30))
def test_a_pattern_at_a_word_is_found_where_one_after_an_edge_of_words_is(text: str) -> None:
    found = [match.span() for match in re.finditer(at_word(r"ab|b ?a\b|e\w"), text)]

    assert found == [match.span() for match in re.finditer(r"\b(?:ab|b ?a\b|e\w)", text)]


LINES = st.lists(st.text("ab01.x \t\x0b\x1c٣é", max_size=8), max_size=8)


@given(LINES)
def test_lines_are_comparable_as_they_are_masked(lines: list[str]) -> None:
    names = comparable(lines)

    assert [name == names[0] for name in names] == [masked(line) == masked(lines[0]) for line in lines]
