"""Cut texts for display: head and tail around a count, or the first line and a count."""

from __future__ import annotations

from typing import Final

from overspill.shapes import media
from overspill.text.sanitize import cut_after, cut_before, may_cut, sanitize

_HEAD_SHARE: Final = 2 / 3
_NEWLINE: Final = "\n"
_NEAR: Final = 3 / 4
"""A line end is near if no more than a quarter of the head, or of the tail, is lost by it."""


def cut_text(text: str, limit: int) -> str:
    """Return head and tail of `text` around the number of characters left out, in `limit` characters.

    Cuts at a line end if one is near, and never inside a character.
    """
    if len(text) <= limit:
        return text
    room = limit - len(_gap(len(text)))
    if room <= 0:
        return text[: cut_before(text, max(0, limit))]
    head = int(room * _HEAD_SHARE)
    first, last = int(head * _NEAR), len(text) - (room - head)
    stop = text.rfind(_NEWLINE, first, head) + 1
    start = text.find(_NEWLINE, last - 1, last + int((room - head) * (1 - _NEAR))) + 1
    stop = stop if stop and may_cut(text, stop) else cut_before(text, head)
    start = start if start and may_cut(text, start) else cut_after(text, last)
    gap = _gap(start - stop)
    return f"{text[:stop]}{gap[1:] if stop and text[stop - 1] == _NEWLINE else gap}{text[start:]}"


def _gap(characters: int) -> str:
    return f"\n… [{characters:,} characters not shown] …\n"


def first_line(text: str, limit: int) -> str:
    """Return the first line that is not blank, clean, and how much came behind it."""
    text = media.text_for_display(sanitize(text)).strip()
    line = text.split("\n", 1)[0].rstrip()
    if len(text) <= limit and line == text:
        return text
    room = limit - len(_rest(len(text)))
    line = line[: cut_before(line, max(0, room if room > 0 else limit))].rstrip()
    return line if room <= 0 else f"{line}{_rest(len(text) - len(line))}".lstrip()


def _rest(characters: int) -> str:
    return f" … [{characters:,} characters not shown]"
