"""The part of a body that a preview looks at: all of it, or both ends of long bytes or a long file."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from overspill.reading.lock_free import cached_property
from overspill.text import encoding, measure, quantities
from overspill.text.measure import NewlineIndex, extent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from overspill.reading.chunks import Extent
    from overspill.text.body import Body

END_BYTES: Final = 4 * 1024 * 1024
"""Bytes read at either end of a long body."""
_SAMPLE_CHARS: Final = 32 * 1024
# Control characters that no text has, and bytes that no encoding explains. ESC and newlines are no noise.
_NOISE: Final = re.compile(r"[\0-\x07\x0e-\x1a\x1c-\x1f\udc80-\udcff]")
_MAX_NOISE_SHARE: Final = 0.1
_MAX_CONTINUATION: Final = 3
"""Bytes of UTF-8 that may follow the first byte of a character."""
_CONTINUATION_BYTES: Final = bytes(range(0x80, 0xC0))


@dataclass(frozen=True)
class Excerpt:
    """`text` is the whole body, or its two ends. The second end begins at `seam`.

    `whole` is the size of the whole body. `counted` is the index of the newlines of `text`, if they were
    counted before. Bytes that are not UTF-8 are in `text` as Python's escaped surrogates.
    """

    text: str
    whole: Extent
    seam: int | None = None
    counted: NewlineIndex | None = field(default=None, compare=False, repr=False)

    @cached_property
    def newlines(self) -> NewlineIndex:
        """The newlines of `text`, counted once."""
        return self.counted or NewlineIndex(self.text)

    @property
    def is_whole(self) -> bool:
        """Whether `text` is all of the body."""
        return self.seam is None

    @property
    def first_stop(self) -> int:
        """The position in `text` where the beginning of the output stops."""
        return len(self.text) if self.seam is None else self.seam

    @property
    def last_start(self) -> int:
        """The position in `text` where the end of the output starts."""
        return self.seam or 0

    def newlines_between(self, stop: int, start: int) -> int:
        """Count the newlines of the whole that are neither in `text[:stop]` nor in `text[start:]`."""
        text, newlines = self.text, self.whole.lines - (not self.text.endswith("\n"))
        return newlines - measure.count_newlines(text, 0, stop) - measure.count_newlines(text, start)

    def numbering(self) -> Callable[[int], int]:
        """Return a function that gives the line number, in the whole, of a position in `text`."""
        found = self.newlines
        end = found.before(len(self.text) - self.text.endswith("\n"))

        def number(position: int) -> int:
            if position < self.first_stop:
                return 1 + found.before(position)
            return self.whole.lines - end + found.before(position)

        return number


def excerpt_of_text(text: str, extent: Extent | None = None) -> Excerpt:
    """Return all of `text` as an excerpt. `extent` is its size, if it was measured before."""
    return Excerpt(text, extent_of(text) if extent is None else extent)


def excerpt_of_body(
    body: Body, extent: Extent, min_reach: int, counted: NewlineIndex | None = None
) -> Excerpt | None:
    """Return the excerpt of `body` with at least `min_reach` bytes of either end; None if it is not text.

    `extent` is the size of the body. `counted` is the index of a text, if it was counted before. Raises
    `OSError` if a file cannot be read.
    """
    if isinstance(body, str):
        return Excerpt(body, extent, counted=counted)
    reach = max(END_BYTES, min_reach)
    if extent.size <= 2 * reach:
        text = encoding.part(body, 0, extent.size).decode("utf-8", "surrogateescape")
        return Excerpt(text, extent) if _is_text(text) else None
    text = _first_end(encoding.part(body, 0, reach))
    last = _last_end(encoding.part(body, extent.size - reach, reach))
    joined = Excerpt(text + last, extent, len(text))
    return joined if _is_text(joined.text) else None


def describe_binary(data: Sized, media_type: str) -> str:
    """Return the text that replaces a preview if the output is not text."""
    return f"({quantities.plural(len(data), 'byte')} of {media_type}, not text)"


def _first_end(data: bytes) -> str:
    """Decode the whole lines of a beginning; if it is one long line, its whole characters."""
    stop = data.rfind(b"\n") + 1 or len(data)
    lines = memoryview(data)[:stop]  # an incremental decoder, which keeps the rest, would copy them
    return codecs.utf_8_decode(lines, "surrogateescape", False)[0]


def _last_end(data: bytes) -> str:
    """Decode the whole lines of an end; if it is one long line, its whole characters."""
    start = data.find(b"\n", 0, -1) + 1
    if not start:
        continuation = len(data) - len(data.lstrip(_CONTINUATION_BYTES))
        start = continuation if continuation <= _MAX_CONTINUATION else 0
    return str(memoryview(data)[start:], "utf-8", "surrogateescape")


def _is_text(text: str) -> bool:
    """Guess from both ends whether this is text: no run of zero bytes, and little noise."""
    sample = text[:_SAMPLE_CHARS] + text[-_SAMPLE_CHARS:]
    if "\0\0\0\0" in sample:
        return False
    return len(_NOISE.findall(sample)) <= _MAX_NOISE_SHARE * len(sample)
