"""Searches without RE2: the same matches for plain texts, and a clear answer for all other patterns."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.reading.errors import InvalidPattern
from overspill.reading.plain_patterns import PlainPattern
from overspill.reading.re2_patterns import Re2Pattern

LETTERS = "aAbkKsSäÄß\N{GREEK SMALL LETTER SIGMA}ςΣé. *+()|"
TEXT = st.text(LETTERS, min_size=1, max_size=4)


def lines_found(pattern: PlainPattern | Re2Pattern, data: bytes) -> tuple[int, tuple[int, int] | None]:
    return pattern.count(data, 0, len(data)), pattern.search(data, 0, len(data))


@settings(max_examples=150, deadline=None)
@given(text=TEXT, lines=st.lists(st.text(LETTERS, max_size=12), max_size=6), ignore_case=st.booleans())
def test_a_fixed_text_is_found_where_re2_finds_it(text: str, lines: list[str], ignore_case: bool) -> None:
    data = "\n".join(lines).encode()
    plain, re2 = (
        engine.compile(text, fixed=True, ignore_case=ignore_case) for engine in (PlainPattern, Re2Pattern)
    )

    assert lines_found(plain, data) == lines_found(re2, data)


@pytest.mark.parametrize("pattern", ["error", "error|failed", r"a\.b", r"x\|y|z", "exit: 1", "ÄB|é", ""])
@pytest.mark.parametrize("ignore_case", [False, True])
def test_alternatives_of_texts_are_found_where_re2_finds_them(pattern: str, ignore_case: bool) -> None:
    data = "an Error\nfailed\na.b axb\nx|y\nz\nexit: 1\näb É\n".encode()
    plain, re2 = (engine.compile(pattern, ignore_case=ignore_case) for engine in (PlainPattern, Re2Pattern))

    assert lines_found(plain, data) == lines_found(re2, data)


def test_case_is_ignored_as_re2_does_for_every_letter() -> None:
    cased = [chr(code) for code in range(0x600) if unicodedata.category(chr(code)) in ("Ll", "Lu")]
    letters = [each for each in cased if len(each.casefold()) == 1]
    data = "\n".join(map(chr, range(0x20, 0x2200))).encode()

    def found(engine: type[PlainPattern | Re2Pattern], letter: str) -> int:
        return engine.compile(letter, fixed=True, ignore_case=True).count(data, 0, len(data))

    differing = [each for each in letters if found(PlainPattern, each) != found(Re2Pattern, each)]
    assert differing == []


@pytest.mark.parametrize("pattern", ["a.b", "a+", "^a", "a$", "(a)", "[a]", r"\d", r"a\\d|\s", "(?i)a"])
def test_any_other_pattern_is_refused_with_what_to_do(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="pip install google-re2"):
        PlainPattern.compile(pattern)


@pytest.mark.parametrize("pattern", ["(?=a)", r"a\n", "a\nb", "\ud800", "a" * 5_000])
def test_what_the_service_refuses_is_refused_as_there(pattern: str) -> None:
    with pytest.raises(InvalidPattern) as plain:
        PlainPattern.compile(pattern)
    with pytest.raises(InvalidPattern) as re2:
        Re2Pattern.compile(pattern)

    assert str(plain.value) == str(re2.value)
