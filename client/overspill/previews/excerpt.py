"""What is looked at of a body: all of it, or its two ends where it is long and lies in a file."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.body import Filed
from overspill.measure import Extent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill.body import Body

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

    `whole` is the extent of all of it. What no encoding explains is there as Python's escaped surrogates.
    """

    text: str
    whole: Extent
    seam: int | None = None

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
        return newlines - measure.newlines(text, 0, stop) - measure.newlines(text, start)

    def numbers_of(self, positions: Iterable[int]) -> dict[int, int]:
        """The numbers of the lines at `positions`, the text counted once, from the nearest end."""
        near = {position: self._is_near_begin(position) for position in positions}
        numbers: dict[int, int] = {}
        known, number = 0, 1
        for position in sorted(position for position in near if near[position]):
            number += measure.newlines(self.text, known, position)
            known = position
            numbers[position] = number
        known, number = len(self.text) - self.text.endswith("\n"), self.whole.lines
        for position in sorted((position for position in near if not near[position]), reverse=True):
            number -= measure.newlines(self.text, position, known)
            known = position
            numbers[position] = number
        return numbers

    def _is_near_begin(self, position: int) -> bool:
        return position < self.first_stop and (self.seam is not None or position <= len(self.text) // 2)


def of_text(text: str, extent: Extent | None = None) -> Excerpt:
    return Excerpt(text, Extent.of(text) if extent is None else extent)


def of_body(body: Body, extent: Extent, least: int) -> Excerpt | None:
    """The excerpt of `body`, at least `least` bytes at either end; None where it is no text.

    `extent` is that of the body. Raises `OSError` where a file cannot be read.
    """
    if isinstance(body, str):
        return Excerpt(body, extent)
    reach = max(REACH, least)
    if extent.size <= 2 * reach:
        data = body.at(0, extent.size) if isinstance(body, Filed) else body
        text = data.decode("utf-8", "surrogateescape")
        return Excerpt(text, extent) if _is_text(text) else None
    if isinstance(body, Filed):
        first, last = body.at(0, reach), body.at(extent.size - reach, reach)
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
