"""Turn captured bytes into text for people and models: decode, remove escape sequences, cut."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.terminal_screen import shown_text
from overspill.reading.terminal_tokens import MOVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STEP_BYTES: Final = 1024 * 1024
_CONTINUATION: Final = range(0x80, 0xC0)
_LONGEST_CHARACTER: Final = 4
_LEAD, _LEAD_OF_3, _LEAD_OF_4 = 0xC0, 0xE0, 0xF0

# ECMA-48 sequences, each part bounded and possessive, so that matching is linear and a broken sequence
# never takes the text behind it along: then only its introducer goes. None of them reaches over a line end.
_ESCAPES: Final = re.compile(
    rb"""
    \x1b\[ [0-?]{0,64}+ [\ -/]{0,8}+ [@-~] \x0f?+  # control sequences: colours, cursor; SI as in tmux
  | \x1b [\]PX^_] [^\x00-\x07\n\x1b]{0,4096}+ (?: \x07 | \x1b\\ )  # strings: titles, hyperlinks
  | \x1b [\ -/]{1,4}+ [0-~]                                       # character sets
  | \x1b [0-OQ-WYZ\\`-~]                                          # two-character sequences
  | \x1b [\[\]PX^_]?                                              # the introducer of a broken one
    """,
    re.VERBOSE,
)

# All of a line before its last carriage return that something follows.
_REWRITTEN: Final = re.compile(rb"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)

_UNSEEN: Final = bytes({*range(0x20), 0x7F} - {*b"\b\t\n\v\f\r\x1b"})
"""Control characters that a terminal does not show."""
_NOTHING_SEEN: Final = dict.fromkeys(_UNSEEN)

_TO_START: Final = re.compile(rb"\x1b\[[01]?G")
r"""To the first column, as `\r`."""

LONGEST_ESCAPE: Final = 4_200
"""Bytes that an escape sequence can have, at least."""
_UNFINISHED: Final = re.compile(
    rb"""
    \x1b (?:
        \[ [0-?]{0,64} [\ -/]{0,8}
      | [\]PX^_] [^\x00-\x07\n\x1b]{0,4096} \x1b?
      | [\ -/]{0,4}
    ) \Z
    """,
    re.VERBOSE,
)


class Decoded(NamedTuple):
    """Text out of bytes, and whether some of them were not UTF-8."""

    text: str
    replaced: bool
    """Whether U+FFFD stands for bytes that are not UTF-8."""
    rewritten: bool = False
    """Whether what a terminal has overwritten or erased was left out."""
    numbers: Sequence[int] | None = None
    """For each line of a terminal's text, the line of the data, from 0, in which it was begun."""

    def last_lines(self, count: int) -> Decoded:
        """Return the last lines of a terminal's text: those above its beginning are none of the data's."""
        if self.numbers is None or len(self.numbers) <= count:
            return self
        shown = "\n".join(self.text.split("\n")[len(self.numbers) - count :])
        return self._replace(text=shown, numbers=self.numbers[-count:])


def decode(data: bytes, *, ansi: bool = False, columns: int | None = None) -> Decoded:
    """Return `data` as text, without escape sequences unless `ansi`.

    If a terminal has shown it, which has `columns` (0 if nobody knows how many), its lines are as it shows
    them in the end: fewer, if some were drawn over others. None is for what no terminal has shown.
    """
    shown_data = data if ansi else strip_escapes(data)
    text, replaced = _text(shown_data)
    if columns is None or ansi:
        return Decoded(text, replaced)
    shown = shown_text(_text(_strip_all_but_moves(data))[0], columns)
    is_rewritten = shown.text != text and shown.text != text.translate(_NOTHING_SEEN)
    return Decoded(shown.text, replaced, rewritten=is_rewritten, numbers=shown.numbers)


def _text(data: bytes) -> tuple[str, bool]:
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode(errors="replace"), True


def is_utf8(data: bytes) -> bool:
    """Return whether all of `data` is UTF-8. Works in steps, which let other threads run between."""
    at, view = 0, memoryview(data)
    try:
        while at < len(data):
            is_last = at + _STEP_BYTES >= len(data)
            at += codecs.utf_8_decode(view[at : at + _STEP_BYTES], "strict", is_last)[1]
    except UnicodeDecodeError:
        return False
    return True


def normalize_lines(data: bytes, *, ansi: bool, utf8: bool) -> bytes:
    r"""Return whole lines as they are searched and shown.

    Escape sequences are removed unless `ansi`, `\r\n` becomes `\n`, and U+FFFD replaces each run of bytes
    that is not UTF-8 (`utf8` says that there is none). Lines keep their numbers.
    """
    if not ansi:
        data = strip_escapes(data)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    return data if utf8 else data.decode(errors="replace").encode()


def seam(data: bytes, limit: int) -> int:
    """Return the largest position up to `limit` where `data` may be cut before `normalize_lines`.

    It lies in no UTF-8 character and in no escape sequence, whatever may follow behind `limit`.
    """
    cut = _character_start(data, min(limit, len(data)))
    unfinished = _UNFINISHED.search(data, max(0, cut - LONGEST_ESCAPE), cut)
    return unfinished.start() if unfinished else cut


def seams(data: bytes, start: int, step: int) -> Iterator[int]:
    """Yield the ends of parts of `data` of about `step` bytes, from `start` on.

    The last is the end of `data`.
    """
    limit = start
    while start < len(data):
        limit += step
        cut = len(data) if limit >= len(data) else seam(data, limit)
        if cut > start:
            yield cut
            start = cut


def _character_start(data: bytes, cut: int) -> int:
    """Return `cut`, or the start of a UTF-8 character that may reach over it."""
    for start in range(cut - 1, max(cut - _LONGEST_CHARACTER, -1), -1):
        if data[start] in _CONTINUATION:
            continue
        return start if data[start] >= _LEAD and start + _length(data[start]) > cut else cut
    return cut


def _length(lead: int) -> int:
    """Return the bytes of a UTF-8 character that begins with `lead`."""
    return 4 if lead >= _LEAD_OF_4 else 3 if lead >= _LEAD_OF_3 else 2


def strip_escapes(data: bytes) -> bytes:
    """Return `data` without ANSI escape sequences. Lines stay lines."""
    return _ESCAPES.sub(b"", data) if b"\x1b" in data else data


def _strip_all_but_moves(data: bytes) -> bytes:
    """Return `data` without the escape sequences that `terminal_line` does not know, and unseen controls."""
    if b"\x1b" in data:
        data = _ESCAPES.sub(_move, _TO_START.sub(b"\r", data))
    return data.translate(None, _UNSEEN)


def _move(found: re.Match[bytes]) -> bytes:
    """Return a sequence if `terminal_line` knows it. The bell that ends some is a control too."""
    return found[0].replace(b"\x07", b"\x1b\\") if MOVES.match(found[0]) else b""


def written_at(line: bytes, at: int | None) -> tuple[int, int]:
    r"""Return the bounds of what was written to a line at once: at or behind the `\r` at `at`, or last."""
    if at is None:
        overwritten = _REWRITTEN.match(line)
        return (overwritten.end() if overwritten else 0), len(line)
    at = len(line) - len(line[at:].lstrip(b"\r"))
    end = line.find(b"\r", at)
    return line.rfind(b"\r", 0, at) + 1, len(line) if end < 0 else end


def cut_before(data: bytes, limit: int) -> int:
    """Return the largest position up to `limit` where a cut splits no UTF-8 character and no escape sequence.

    If the bytes around `limit` are not UTF-8, that is `limit` itself. A longer first character is kept whole.
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
    unfinished = _UNFINISHED.search(data, max(0, end - LONGEST_ESCAPE), end)
    return unfinished.start() if unfinished and unfinished.start() else end


def cut_after(data: bytes, start: int) -> int:
    """Return the smallest position from `start` on where a cut splits no UTF-8 character."""
    for position in range(start, min(start + _LONGEST_CHARACTER, len(data))):
        if data[position] not in _CONTINUATION:
            return position
    return start if start + _LONGEST_CHARACTER <= len(data) else len(data)
