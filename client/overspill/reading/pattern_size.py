"""Estimate the cost of compiling a pattern, from its text alone.

RE2 writes counted repetitions out, and sorts the ranges of every class that a pattern names. It holds the
interpreter's lock meanwhile, so a pattern that would take long is refused before it is compiled.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from overspill.reading.errors import InvalidPattern

MAX_COPIES: Final = 10_000
"""The most characters and classes of a pattern with its repetitions written out: about 0.2 µs each."""
MAX_OPTIONAL: Final = 1_000
"""The most of them that may be missing. 1,000 in a row take RE2 4 ms, 10,000 take 0.2 s."""
MAX_UNICODE_CLASSES: Final = 64
"""The most Unicode classes in a pattern. RE2 takes up to 60 µs for each."""
_MAX_NESTED: Final = 1_000
"""RE2 itself refuses larger repetitions, nested ones multiplied, while it parses."""

UNICODE_CLASS: Final = re.compile(r"\\[pP](?:\{\^?\w*\}|\w)", re.ASCII)
_PIECE: Final = re.compile(
    r"""
    (?P<quoted> \\Q .*? (?: \\E | \Z ) )
  | (?P<flags> \(\? [A-Za-z]* (?:-[A-Za-z]+)? \) )
  | (?P<open> \( (?: \? (?: P?<\w+> | [A-Za-z]* (?:-[A-Za-z]+)? : ) )? )
  | (?P<close> \) )
  | (?P<either> \| )
  | (?P<repeat> (?: [*+?] | \{ (?P<least>\d+) (?P<range>,(?P<most>\d*))? \} ) \?? )
  | \\x\{[0-9A-Fa-f]+\} | \\[pP]\{\^?\w+\} | \\.
  | \[ \^? \]? (?: \[:[^\]]*:\] | \\. | [^\]\\] )* \]?
  | .
    """,
    re.VERBOSE | re.DOTALL,
)


class _Size(NamedTuple):
    copies: int = 0
    optional: int = 0
    nested: int = 1
    """The largest product of nested repetitions."""

    def repeated(self, match: re.Match[str]) -> _Size:
        """Return the size of the item before a repetition, written out as RE2 does."""
        low, high = int(match["least"] or 0), int(match["most"] or match["least"] or 1)
        may_lack = high - low if match["most"] else int(match[0].startswith("?"))
        times = max(low, high, 1)
        return _Size(self.copies * times, self.optional * times + max(may_lack, 0), self.nested * times)


def check_size(pattern: str) -> None:
    """Raise `InvalidPattern`, which says what to write instead, if compiling would take more than some ms."""
    named = UNICODE_CLASS.findall(pattern)
    if len(named) > MAX_UNICODE_CLASSES:
        raise InvalidPattern(
            f"the pattern names Unicode classes like {named[0]} {len(named)} times; {MAX_UNICODE_CLASSES} is "
            r"the most. Write a class once and repeat it, as [\pL\pN]+, or write ASCII classes as [A-Za-z]"
        )
    size = _size_of(pattern)
    if size.nested > _MAX_NESTED:
        return
    if size.copies > MAX_COPIES:
        raise InvalidPattern(
            f"the repetitions of the pattern stand for {size.copies} characters and classes; {MAX_COPIES} is "
            "the most. Write + or * in place of counts as {1000}"
        )
    if size.optional > MAX_OPTIONAL:
        raise InvalidPattern(
            f"the pattern has {size.optional} parts that may be missing, repetitions as {{0,9}} counted "
            f"fully; {MAX_OPTIONAL} is the most. Write * in place of ? and of counts as {{0,1000}}"
        )


def _size_of(pattern: str) -> _Size:
    """Return the size of a pattern. For an invalid one it may be any number."""
    groups: list[list[_Size]] = [[]]
    for match in _PIECE.finditer(pattern):
        match match.lastgroup:
            case "open":
                groups.append([])
            case "close" if len(groups) > 1:
                parts = groups.pop()
                groups[-1].append(_total(parts))
            case "repeat" | "least" | "range" | "most":
                groups[-1].append((groups[-1].pop() if groups[-1] else _Size()).repeated(match))
            case "quoted":
                groups[-1].append(_Size(len(match[0])))
            case "close" | "either" | "flags":
                pass
            case _:
                groups[-1].append(_Size(1))
    return _total([part for parts in groups for part in parts])


def _total(parts: list[_Size]) -> _Size:
    return _Size(
        sum(part.copies for part in parts),
        sum(part.optional for part in parts),
        max((part.nested for part in parts), default=1),
    )
