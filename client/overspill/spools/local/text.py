"""Captured bytes as text for people and models: decoding, escape sequences, cuts. As the service does it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_CONTINUATION: Final = range(0x80, 0xC0)
_LONGEST_CHARACTER: Final = 4
_LONGEST_CONTROL: Final = 80

# ECMA-48, each part bounded and possessive: matching is linear, and a broken sequence takes no text along.
_ESCAPES: Final = re.compile(
    rb"""
    \x1b\[ [0-?]{0,64}+ [\ -/]{0,8}+ [@-~]        # control sequences: colours, cursor
  | \x1b [\]PX^_] [^\x00-\x07\n\x1b]{0,4096}+ (?: \x07 | \x1b\\ )  # strings: titles, hyperlinks
  | \x1b [\ -/]{1,4}+ [0-~]                                       # character sets
  | \x1b [0-OQ-WYZ\\`-~]                                          # two-character sequences
  | \x1b [\[\]PX^_]?                                              # the introducer of a broken one
    """,
    re.VERBOSE,
)
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+)?\Z")


class Decoded(NamedTuple):
    text: str
    replaced: bool
    """Whether U+FFFD stands for bytes that are not UTF-8."""


def decode(data: bytes, *, ansi: bool = False) -> Decoded:
    """`data` as text; escape sequences are removed unless `ansi`."""
    if not ansi:
        data = strip_escapes(data)
    try:
        return Decoded(data.decode(), replaced=False)
    except UnicodeDecodeError:
        return Decoded(data.decode(errors="replace"), replaced=True)


def strip_escapes(data: bytes) -> bytes:
    """`data` without escape sequences; newlines and their number stay."""
    return _ESCAPES.sub(b"", data) if b"\x1b" in data else data


def cut_before(data: bytes, limit: int) -> int:
    """The largest position up to `limit` where a cut splits no UTF-8 character and no escape sequence.

    Where the bytes around `limit` are not UTF-8, that is `limit` itself. A first character that is longer
    is kept whole.
    """
    if limit >= len(data):
        return len(data)
    end = limit
    while end > max(limit - _LONGEST_CHARACTER, 0) and data[end] in _CONTINUATION:
        end -= 1
    if end == 0:
        return cut_after(data, limit)
    if data[end] in _CONTINUATION:
        end = limit
    unfinished = _UNFINISHED.search(data, max(0, end - _LONGEST_CONTROL), end)
    return unfinished.start() if unfinished and unfinished.start() else end


def cut_after(data: bytes, start: int) -> int:
    """The smallest position from `start` on where a cut splits no UTF-8 character (see `cut_before`)."""
    for position in range(start, min(start + _LONGEST_CHARACTER, len(data))):
        if data[position] not in _CONTINUATION:
            return position
    return start if start + _LONGEST_CHARACTER <= len(data) else len(data)
