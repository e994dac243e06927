r"""The size of a text in bytes of UTF-8 and in lines.

A line ends with `\n`. A last line without one counts, and an empty text has no lines. The service counts the
same way.

Long texts are counted in steps: one long call of `str.count` would hold Python's lock and stop every other
thread.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from overspill.reading.chunks import Extent
from overspill.text.body import FileBody
from overspill.text.encoding import encoded_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.text.body import Body

MAX_BYTES_PER_CHARACTER: Final = 4
_COUNTED_AT_ONCE: Final = 32 * 1024
"""Characters or bytes in which newlines are counted in one call."""
_INDEXED_AT_ONCE: Final = 4 * 1024
"""Characters between two positions of which an index knows the newlines before them."""
_USUAL_LINE_BYTES: Final = 40
"""If lines are shorter than this on average, `count` is faster than `replace`."""


def extent_of(body: Body) -> Extent:
    """Return the bytes and lines of a body."""
    if isinstance(body, FileBody):
        return Extent(body.size, body.lines)
    return Extent(size(body), count_lines(body))


def size(body: Body) -> int:
    """Return the bytes of a body. ASCII text is not encoded for this."""
    if not isinstance(body, str):
        return len(body)
    if body.isascii():
        return len(body)
    return sum(map(len, encoded_pieces(body)))


def count_lines(content: str | bytes) -> int:
    """Return the number of lines of a text or its bytes."""
    if isinstance(content, str):
        return count_newlines(content) + (not content.endswith("\n")) if content else 0
    newlines = sum(
        _newlines_of_bytes(content[at : at + _COUNTED_AT_ONCE])
        for at in range(0, len(content), _COUNTED_AT_ONCE)
    )
    return newlines + (not content.endswith(b"\n")) if content else 0


def count_newlines(text: str, start: int = 0, stop: int | None = None) -> int:
    r"""Return how many `\n` are in `text[start:stop]`."""
    stop = len(text) if stop is None else stop
    if stop - start <= _COUNTED_AT_ONCE:
        return text.count("\n", start, stop)
    return sum(_newlines_by_step(text, start, stop, _COUNTED_AT_ONCE))


def _newlines_by_step(text: str, start: int, stop: int, step: int) -> Iterator[int]:
    ranges = ((at, min(at + step, stop)) for at in range(start, stop, step))
    if text.isascii():
        return (_newlines_of_bytes(text[begin:end].encode()) for begin, end in ranges)
    return (text.count("\n", begin, end) for begin, end in ranges)


def _newlines_of_bytes(data: bytes) -> int:
    """Count the newlines of a few bytes.

    `replace` searches at the speed of memory, while `count` looks at each byte. But `replace` is slower where
    lines are short.
    """
    limit = len(data) // _USUAL_LINE_BYTES + 1
    found = len(data) - len(data.replace(b"\n", b"", limit))
    return found if found < limit else data.count(b"\n")


class NewlineIndex:
    r"""The `\n` of a text, counted once: how many stand before any position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._before = list(accumulate(_newlines_by_step(text, 0, len(text), _INDEXED_AT_ONCE), initial=0))

    @property
    def lines(self) -> int:
        """The number of lines of the text."""
        return self._before[-1] + (not self.text.endswith("\n")) if self.text else 0

    def before(self, position: int) -> int:
        r"""Return how many `\n` stand before `position`."""
        step = position // _INDEXED_AT_ONCE
        return self._before[step] + self.text.count("\n", step * _INDEXED_AT_ONCE, position)
