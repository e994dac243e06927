"""`grep` against ripgrep and Python's `re`: random lines, and lines of every length around each border."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from overspill.reading.errors import InvalidPattern
from overspill.reading.grep import Search
from overspill.reading.text import strip_escapes
from overspill.wire import GrepQuery

from tests.reading.stored import capture
from tests.reading.test_grep import WIDE, found

CASES = 60
RG = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
PIECES = [
    "a",
    "b",
    "ab",
    " ",
    "x" * 9,
    "\n",
    "\n",
    "\r\n",
    "42",
    "é",
    "\t",
    ".",
    "€",
    "\x1b[31m",
    "\x1b]0;a\x07",
]
ATOMS = [
    "a",
    "b",
    "ab",
    ".",
    "^",
    "$",
    r"\d",
    "[^a]",
    "(a|b)",
    "a*",
    "b+",
    ".*",
    "x{2,}",
    "é?",
    "|",
    r"\s",
    "[[:alpha:]]",
]


def ripgrep(content: bytes, query: GrepQuery) -> bytes | None:
    """What `rg` prints for this search of what is shown of the content; None if it refuses the pattern."""
    flags = {"-F": query.fixed, "-i": query.ignore_case, "-v": query.invert}
    command = [RG, "--no-config", "--color=never", "--text", "--encoding=none", "-n"]
    command += [flag for flag, is_on in flags.items() if is_on]
    command += [f"-B{query.before}", f"-A{query.after}", "-e", query.pattern, "-"]
    text = strip_escapes(content).replace(b"\r\n", b"\n")
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    return done.stdout if done.returncode < 2 else None


@pytest.mark.parametrize("seed", range(CASES))
def test_the_text_of_an_answer_is_what_ripgrep_prints_for_what_is_shown(seed: int) -> None:
    rng = random.Random(seed)
    content = "".join(rng.choices(PIECES, k=rng.choice([5, 60, 600]))).encode()
    query = GrepQuery(
        pattern="".join(rng.choices(ATOMS, k=rng.randrange(1, 5))),
        fixed=rng.random() < 0.1,
        ignore_case=rng.random() < 0.3,
        invert=rng.random() < 0.3,
        before=rng.randrange(4),
        after=rng.randrange(4),
        max_matches=1000,
    )
    stored = capture(content, *(rng.randrange(len(content)) for _ in range(9)))
    try:
        text = stored.search(Search(query, stored.extent, caps=WIDE))
    except InvalidPattern:
        pytest.skip("RE2 refuses this pattern")
    printed = ripgrep(content, query)

    assert printed is None or text.content.encode() == printed


KIB, MIB = 1024, 1024 * 1024
BORDERS = [64 * KIB, 506_460, 576 * KIB, MIB, 8 * MIB]
"""A slice, the window of `^.{80,}$`, a frame, a mebibyte, and what is held of a line."""
BORDER_PATTERNS = [
    "^.{80,}$",
    "^x+$",
    "start.*end",
    "end$",
    "^start",
    r"start\b.*\bend$",
    "x{70}end",
    "[a-z]{3}e",
]
QUICK = {"x{70}end": "end(?<=x{70}end)", "[a-z]{3}e": "e(?<=[a-z]{3}e)"}
"""The same, so that Python's `re` does not try every character of millions."""


@lru_cache(maxsize=1)  # both directions search the same lines, one behind the other
def bordered(border: int) -> tuple[list[bytes], dict[str, list[int]]]:
    """Lines of about this length, and the numbers of those that match each pattern."""
    lengths = [border - 7, border - 1, border, border + 1, border + 90_000]
    lines = [b"start " + b"x" * (length - 10) + b" end" for length in lengths] + [b"x" * border, b"start end"]
    return lines, {
        pattern: [
            n for n, line in enumerate(lines, 1) if re.search(QUICK.get(pattern, pattern).encode(), line)
        ]
        for pattern in BORDER_PATTERNS
    }


@pytest.mark.parametrize("from_end", [False, True])
@pytest.mark.parametrize("border", BORDERS)
def test_no_line_is_silently_wrong_whatever_its_length(border: int, from_end: bool) -> None:
    lines, matching_lines = bordered(border)
    content = b"\n".join(lines) + b"\n"
    stored = capture(content, *range(576 * KIB, len(content), 576 * KIB))
    for pattern, matching in matching_lines.items():
        for invert in (False, True):
            query = GrepQuery(pattern=pattern, from_end=from_end, invert=invert, max_matches=1000)
            text = stored.search(Search(query, stored.extent))
            unsure = text.incomplete if isinstance(text.incomplete, list) else []
            expected = [n for n in range(1, len(lines) + 1) if (n in matching) != invert and n not in unsure]

            assert sorted(match.line_number for match in found([text])) == expected, (pattern, invert)
            assert not unsure or pattern == "^x+$"


def test_a_line_that_cannot_be_searched_as_a_whole_is_neither_found_nor_left_out() -> None:
    content = b'a "' + b"x" * 9_000_000 + b'" b\nshort\n'
    stored = capture(content, *range(500_000, len(content), 500_000))
    for invert in (False, True):
        for count in (False, True):
            query = GrepQuery(pattern='"[^"]*" b', invert=invert, count=count)
            text = stored.search(Search(query, stored.extent))

            assert text.incomplete == [1]
            assert text.match_count == invert
