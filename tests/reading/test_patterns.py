"""`patterns`: what is refused, with which advice, and what hostile patterns may cost."""

from __future__ import annotations

import traceback

import pytest
from overspill.reading import re2_patterns
from overspill.reading.errors import InvalidPattern
from overspill.reading.pattern_syntax import MAX_PROGRAM, MAX_SIZE
from overspill.reading.re2_patterns import TRIAL_MEMORY, Re2Pattern
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
        (r"(?:\PN){1000}", r"class like \\PN .* write \\PN\+ without a count"),
        (r"\PN" * 1000, r"names Unicode classes like \\PN 1000 times; 64 is the most"),
        ("a{1000}" * 500, r"500000 characters and classes; 10000 is the most.*Write \+ or \*"),
        ("(?:ab{2}){300}" * 50, "45000 characters and classes"),
        ("a{0,1000}" * 10, r"10000 parts that may be missing.*Write \* in place"),
        ("a?" * 2000, "2000 parts that may be missing"),
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


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The memory that each program was compiled with."""
    given: list[int] = []
    compile_once = re2_patterns._compile

    def spied(source: bytes, **how: int) -> re2.RE2:
        given.append(how.get("memory", 0))
        return compile_once(source, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(re2_patterns, "_compile", spied)
    re2_patterns._refusal.cache_clear()
    return given


@pytest.mark.parametrize("pattern", [r"(?:\PN){1000}", r"(?:\pL{10}){100}", "(?:ab|cd|ef){999}"])
def test_a_pattern_that_is_too_large_never_gets_more_than_the_trial_memory(
    pattern: str, budgets: list[int]
) -> None:
    with pytest.raises(InvalidPattern):
        Re2Pattern.compile(pattern)

    assert budgets == [TRIAL_MEMORY]


def test_a_refusal_is_remembered(budgets: list[int]) -> None:
    for _ in range(3):
        with pytest.raises(InvalidPattern, match="steps"):
            Re2Pattern.compile(r"(?:\PN){1000}")

    assert budgets == [TRIAL_MEMORY]


@pytest.mark.parametrize("pattern", ["a{1000}" * 500, "a{0,1000}" * 10, r"\PN" * 1000])
def test_a_pattern_that_would_take_long_to_compile_is_not_compiled(pattern: str, budgets: list[int]) -> None:
    with pytest.raises(InvalidPattern):
        Re2Pattern.compile(pattern)

    assert budgets == []


@pytest.mark.parametrize(
    "pattern",
    ["a" * 4096, r"\PN{10}", "a{0,1000}", r"(?:\d{1,3}\.){3}\d{1,3}", r"[\pL\pN_]+", r"\Q(a{9})?\E" * 200],
)
def test_a_usual_pattern_is_not_too_large(pattern: str) -> None:
    assert Re2Pattern.compile(pattern).program_size <= MAX_PROGRAM
