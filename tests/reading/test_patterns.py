"""`patterns`: what is refused, with which advice, and what hostile patterns may cost."""

from __future__ import annotations

import traceback

import pytest
from overspill.reading.errors import InvalidPattern
from overspill.reading.pattern_syntax import MAX_PROGRAM, MAX_SIZE
from overspill.reading.re2_patterns import Re2Pattern
from re2 import _re2 as re2


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("a(?=b)", "look-ahead .* not supported.*context="),
        ("a(?!b)", "negative look-ahead .*invert=true"),
        ("(?<=a)b", "look-behind .* not supported"),
        ("(?<!a)b", "negative look-behind"),
        (r"(a)\1", "back-references are not supported"),
        (r"(?P<n>a)(?P=n)", "back-references are not supported"),
        (r"\k<n>", "back-references are not supported"),
        ("a++", r"possessive repetition \+\+ .* write \+"),
        ("a{2,3}+", "possessive repetition"),
        ("(?>a)", r"atomic groups .* write \(\?:"),
        ("a{1001}", "1000 is the most"),
        ("((a{1000}){1000})", "1000 is the most"),
        ("(?x) a b", "flag x"),
        ("(?-m)^a", "flag m"),
        ("(?#note)a", "comments"),
        ("(?R)", "recursion"),
        ("(?(1)a|b)", "conditionals"),
        (r"a\Z", r"Write \$"),
        (r"\Aa", r"Write \^"),
        (r"a\nb", "cannot match a line end"),
        ("a\nb", "cannot match a line end"),
        (r"\C", r"Write \. for any"),
        ("(a", r"not valid: missing \)"),
        ("[z-a]", "not valid: invalid character class range"),
        ("\ud800", "not valid Unicode"),
        ("a" * (MAX_SIZE + 1), f"{MAX_SIZE} is the most"),
        ("é" * MAX_SIZE, f"{MAX_SIZE} is the most"),
        ("(a+b+c+d+){900}", f"more than {MAX_PROGRAM} steps"),
        (r"(\pL{50}){20}", f"more than {MAX_PROGRAM} steps"),
    ],
)
def test_a_refusal_names_the_construct_and_what_to_write_instead(pattern: str, advice: str) -> None:
    with pytest.raises(InvalidPattern, match=advice):
        Re2Pattern.compile(pattern)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"\\1", r"\1"),
        (r"[(?=]", "("),
        (r"[]$]x", "$x"),
        (r"[^\]a]$", "b"),
        (r"\Q(?=a)$\E$", "(?=a)$"),
        (r"\$5", "$5"),
        ("(?i)ERR", "err"),
        ("(?:a|b)$", "b"),
        ("(?P<name>a)", "a"),
        ("(?<name>a)", "a"),
        ("[[:alpha:]$]+$", "a$"),
        (r"[\n]?a", "a"),
        ("a{2,3}?$", "aaa"),
        ("a{,2}", "a{,2}"),
        ("$*a", "a"),
    ],
)
def test_what_only_looks_unsupported_is_searched(pattern: str, line: str) -> None:
    data = b"?\n" + line.encode() + b"\n"

    assert Re2Pattern.compile(pattern).search(data, 2, len(data) - 1) is not None


def test_fixed_text_means_itself() -> None:
    pattern = Re2Pattern.compile("a.(?=*)[\\", fixed=True)

    assert pattern.search(b"xa.(?=*)[\\x", 0, 11) == (1, 10)
    assert pattern.search(b"ab(?=*)[\\", 0, 9) is None


def test_case_is_ignored_beyond_ascii() -> None:
    assert Re2Pattern.compile("straßE éΣ", fixed=True, ignore_case=True).search(
        "STRASSE STRAẞe Éς".encode(), 0, 21
    )


@pytest.mark.parametrize("pattern", [r"(\pL{1,50}[abc]{5}){1,3}", "a(b", r"\pL{999}"])
def test_a_refused_pattern_keeps_no_automaton(pattern: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        Re2Pattern.compile(pattern)
    frames = [frame for frame, _ in traceback.walk_tb(refused.value.__traceback__)]
    held = [value for frame in frames for value in frame.f_locals.values()]
    held += [value for each in held if isinstance(each, Re2Pattern) for value in vars(each).values()]

    assert not [value for value in held if isinstance(value, re2.RE2)]
