"""Outline a JSON text in a few lines: its shape, and the members that report errors.

Cheap and bounded: of a long text only the beginning is parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews.json_errors import cut_short, error_lines, printable_key
from overspill.reading import json_shape
from overspill.text import measure

if TYPE_CHECKING:
    from overspill.previews.excerpt import Excerpt

_WHOLE_CHARS: Final = 384 * 1024
"""Up to this length a text is parsed as a whole; of a longer one its first `_BEGINNING_CHARS`."""
_BEGINNING_CHARS: Final = 32 * 1024
_MIN_BYTES: Final = 40
_MAX_BLANKS: Final = 1_000


class JsonOutline(NamedTuple):
    """`shape` is one line. Each of the `errors` is a line with the path of a member."""

    shape: str
    errors: list[str]
    is_whole: bool = False

    def within(self, max_bytes: int, max_lines: int) -> str:
        """Return as many lines as fit. The shape is cut short if it would leave no room for errors."""
        if max_lines < 1 or max_bytes < _MIN_BYTES:
            return ""
        limit = max_bytes if not self.errors else max_bytes // 2
        lines = [cut_short(self.shape, limit - 1)]
        left = max_bytes - measure.size(lines[0]) - 1
        for line in self.errors[: max_lines - 1]:
            left -= measure.size(line) + 1
            if left < 0:
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)


def json_outline(excerpt: Excerpt) -> JsonOutline | None:
    """Return the outline of an excerpt; None if it is neither JSON nor JSON Lines."""
    text = excerpt.text
    begin = int(text.startswith("\ufeff"))
    while begin < _MAX_BLANKS and text[begin : begin + 1].isspace():
        begin += 1
    if text[begin : begin + 1] not in ("{", "["):
        return None
    is_whole = excerpt.is_whole and len(text) <= _WHOLE_CHARS
    stop = len(text) if is_whole else min(begin + _BEGINNING_CHARS, excerpt.first_stop)
    found = json_shape.parsed(text[begin:stop], is_whole=is_whole)
    if found is None:
        return None
    shape = found.shape(printable_key)
    if found.is_lines:
        return JsonOutline(f"JSON Lines: {excerpt.whole.lines:,} of {shape}", [])
    if not is_whole:
        return JsonOutline(f"JSON (from its beginning): {shape}", [])
    return JsonOutline(f"JSON: {shape}", error_lines(found.values[0]), is_whole=True)
