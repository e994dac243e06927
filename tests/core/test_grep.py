"""`grep`: what it finds, against a loop over single lines and against ripgrep."""

from __future__ import annotations

import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.wire import GrepQuery
from overspill_service.chunks import Caps
from overspill_service.grep import Search

from tests.core.stored import capture, is_utf8, split

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


def naive(content: bytes, query: GrepQuery) -> list[int]:
    """Numbers of the lines wanted, line by line with the engine's public interface."""
    options = re2.Options()
    options.case_sensitive = not query.ignore_case
    options.log_errors = False
    options.literal = query.fixed
    bytewise = re2.Options()
    bytewise.case_sensitive = not query.ignore_case
    bytewise.encoding = re2.Options.Encoding.LATIN1
    bytewise.literal = query.fixed
    pattern = re2.compile(query.pattern.encode(), options)
    hidden = re2.compile(query.pattern.encode(), bytewise)
    numbers = []
    for number, line in enumerate(split(content), 1):
        text = (
            line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line.removesuffix(b"\r")
        )
        matched = pattern.search(text) is not None
        if not matched and not is_utf8(text):
            matched = hidden.search(text) is not None
        if matched != query.invert:
            numbers.append(number)
    return numbers


@given(CONTENT, CUTS, PATTERNS, st.booleans(), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=600, deadline=None)
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
