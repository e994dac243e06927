"""What is looked at of a body: all of it, or its two ends where it is long and lies in a file."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from overspill.text import measure
from overspill.text.body import FileBody
from overspill.text.measure import NewlineIndex, extent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Extent
    from overspill.text.body import Body

REACH: Final = 4 * 1024 * 1024
"""Bytes read at either end of a long body."""
_SAMPLE: Final = 32 * 1024
_NOISE: Final = re.compile(r"[\0-\x07\x0e-\x1a\x1c-\x1f\udc80-\udcff]")
_MOST_NOISE: Final = 0.1
_LONGEST_CHARACTER: Final = 3
"""Bytes of a character that may stand before its end is cut off."""
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is the whole, or its two ends, the second of which begins at `seam`.

    `whole` is the extent of all of it, and `newlines` those of `text` where they are counted. What no
    encoding explains is there as Python's escaped surrogates.
    """

    text: str
    whole: Extent
    seam: int | None = None
    newlines: NewlineIndex | None = field(default=None, compare=False, repr=False)

    @property
    def is_whole(self) -> bool:
        return self.seam is None

    @property
    def first_stop(self) -> int:
        """Where the first end stops."""
        return len(self.text) if self.seam is None else self.seam

    @property
    def last_start(self) -> int:
        """Where the last end begins."""
        return self.seam or 0

    def newlines_between(self, stop: int, start: int) -> int:
        """Newlines of the whole that are neither in `text[:stop]` nor in `text[start:]`."""
        text, newlines = self.text, self.whole.lines - (not self.text.endswith("\n"))
        return newlines - measure.count_newlines(text, 0, stop) - measure.count_newlines(text, start)

    def numbering(self) -> Callable[[int], int]:
        """Return what tells the number of the line at a position."""
        found = self.newlines or NewlineIndex(self.text)
        end = found.before(len(self.text) - self.text.endswith("\n"))

        def number(position: int) -> int:
            if position < self.first_stop:
                return 1 + found.before(position)
            return self.whole.lines - end + found.before(position)

        return number


def excerpt_of_text(text: str, extent: Extent | None = None) -> Excerpt:
    return Excerpt(text, extent_of(text) if extent is None else extent)


def excerpt_of_body(
    body: Body, extent: Extent, least: int, newlines: NewlineIndex | None = None
) -> Excerpt | None:
    """The excerpt of `body`, at least `least` bytes at either end; None where it is no text.

    `extent` is that of the body, and `newlines` are those of a text, where somebody has counted them.
    Raises `OSError` where a file cannot be read.
    """
    if isinstance(body, str):
        return Excerpt(body, extent, newlines=newlines)
    reach = max(REACH, least)
    if extent.size <= 2 * reach:
        data = body.read(0, extent.size) if isinstance(body, FileBody) else body
        text = data.decode("utf-8", "surrogateescape")
        return Excerpt(text, extent) if _is_text(text) else None
    if isinstance(body, FileBody):
        first, last = body.read(0, reach), body.read(extent.size - reach, reach)
    else:
        first, last = body[:reach], body[-reach:]
    text = _first_end(first)
    joined = Excerpt(text + _last_end(last), extent, len(text))
    return joined if _is_text(joined.text) else None


def _first_end(data: bytes) -> str:
    """Whole lines where there are any, else whole characters."""
    stop = data.rfind(b"\n") + 1
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    return decoder.decode(data[:stop] if stop else data)


def _last_end(data: bytes) -> str:
    start = data.find(b"\n", 0, -1) + 1
    if not start:
        start = len(data) - len(data.lstrip(_CONTINUATION))
    return data[start if start <= _LONGEST_CHARACTER or data[start - 1] == ord("\n") else 0 :].decode(
        "utf-8", "surrogateescape"
    )


def _is_text(text: str) -> bool:
    sample = text[:_SAMPLE] + text[-_SAMPLE:]
    if "\0\0\0\0" in sample:
        return False
    return len(_NOISE.findall(sample)) <= _MOST_NOISE * len(sample)
