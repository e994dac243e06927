"""Checks the syntax of search patterns: RE2's, without the parts that make no sense in a single line."""

from __future__ import annotations

import re
from typing import Final

from overspill.reading.errors import InvalidPattern

MAX_SIZE: Final = 4096
"""Bytes that a pattern may have."""
MAX_PROGRAM: Final = 5_000
"""Instructions that it may compile to; typical patterns have 7 to 111."""

_LINE_END: Final = (
    "a pattern cannot match a line end: lines are searched one by one. Search for one of the lines, "
    "and use context=, before= or after= to see those around it"
)
_TOKEN: Final = re.compile(
    r"""
    \\Q .*? (?: \\E | \Z )                             # quoted text
  | \\ .                                               # an escape
  | \[ \^? \]? (?: \[:[^\]]*:\] | \\. | [^\]\\] )* \]?   # a class
  | \(\? (?: <?[=!] | P?[<=>&] | ['>|\#(&R+] | -?\d | [A-Za-z]*(?:-[A-Za-z]*)? )  # a special group
  | \$
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_LOOK_AROUND: Final = (
    "Search for the plain text and pick among the matching lines (context=, before= and after= show more), "
    "or use invert=true to leave lines out"
)
_REFUSED: Final = {
    "(?=": f"look-ahead (?=…) is not supported. {_LOOK_AROUND}",
    "(?!": f"negative look-ahead (?!…) is not supported. {_LOOK_AROUND}",
    "(?<=": f"look-behind (?<=…) is not supported. {_LOOK_AROUND}",
    "(?<!": f"negative look-behind (?<!…) is not supported. {_LOOK_AROUND}",
    "(?>": "atomic groups (?>…) are not supported and not needed, since nothing backtracks: write (?:…)",
    "(?P=": "back-references are not supported. Write what the group matches once more",
    "(?P>": "recursion is not supported. Search for a part that does not nest",
    "(?R": "recursion is not supported. Search for a part that does not nest",
    "(?&": "recursion is not supported. Search for a part that does not nest",
    "(?(": "conditionals are not supported. Write the alternatives as a|b",
    "(?|": "branch reset groups are not supported and not needed: write (?:…|…)",
    "(?#": "comments (?#…) are not supported. Leave them out",
    "(?'": "named groups are written (?P<name>…); a plain (…) does as well here",
    r"\A": r"\A is not supported: lines are searched one by one. Write ^",
    r"\z": r"\z is not supported: lines are searched one by one. Write $",
    r"\Z": r"\Z is not supported: lines are searched one by one. Write $",
    r"\n": _LINE_END,
    r"\R": _LINE_END,
    r"\C": r"\C is not supported. Write . for any character",
    r"\X": r"\X is not supported. Write . for any character",
    r"\N": r"\N is not supported. Write . for any character",
    r"\K": r"\K is not supported. Leave it out: whole lines are given",
    r"\G": r"\G is not supported. Leave it out",
    r"\h": r"\h is not supported. Write [ \t]",
    r"\H": r"\H is not supported. Write [^ \t]",
    r"\e": r"\e is not supported. Write \x1b",
    r"\u": r"\u is not supported. Write \x{…} with the hexadecimal code",
    r"\U": r"\U is not supported. Write \x{…} with the hexadecimal code",
    r"\k": "back-references are not supported. Write what the group matches once more",
    r"\g": "back-references are not supported. Write what the group matches once more",
}


def check(pattern: str) -> None:
    """Raise `InvalidPattern` for syntax that RE2 lacks, or that means something else in a search of lines."""
    for part in _TOKEN.findall(pattern):
        if part.startswith("\\") and part[1:] in tuple("123456789"):
            raise InvalidPattern(_REFUSED[r"\k"])
        if part in _REFUSED:
            raise InvalidPattern(_REFUSED[part])
        if part.startswith("(?"):
            _check_flags(part)


def _check_flags(group: str) -> None:
    on, _, off = group[2:].partition("-")
    if "x" in on:
        raise InvalidPattern("the flag x is not supported. Write the pattern without spaces and comments")
    if "m" in off:
        raise InvalidPattern("the flag m cannot be taken off: lines are searched one by one")
    if on.isdecimal() or off.isdecimal() or on == "+":
        raise InvalidPattern(_REFUSED["(?R"])


def encoded(pattern: str) -> bytes:
    """Encode a pattern as UTF-8. Raises `InvalidPattern` if it has several lines or over `MAX_SIZE` bytes."""
    if "\n" in pattern:
        raise InvalidPattern(_LINE_END)
    try:
        source = pattern.encode()
    except UnicodeEncodeError as error:
        raise InvalidPattern("the pattern is not valid Unicode: it has a lone surrogate") from error
    if len(source) > MAX_SIZE:
        raise InvalidPattern(
            f"the pattern has {len(source)} bytes; {MAX_SIZE} is the most. Search for a shorter part of it"
        )
    return source
