r"""The chunks of content that the bounded readers take, and how the readers ask for them.

The readers (`lines`, `grep`, `summary`) do no I/O. Their driver finds, fetches and decodes frames, and feeds
them as chunks:

    while read.wanted is not None:
        for chunk in decoded(read.wanted):     # in order, from the first to the last that is wanted
            read.feed(chunk)                   # CPU work: in a thread, one call at a time
            if read.wanted is None:
                break
    answer = read.answer()

Lines end at `\n`; newlines are numbered from 1, so that newline n ends line n.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

_FEW_NEWLINES: Final = 64
_NEAR_BYTES: Final = 2 * 1024


class Chunk(NamedTuple):
    """Consecutive bytes of a capture, usually one frame; never empty."""

    data: bytes
    start: int
    """Offset of `data[0]` in the capture."""
    newlines: int
    """The number of newlines in the capture before `data`."""
    utf8: bool = True
    """Whether `data` is valid UTF-8 (the frame's flag)."""


class Extent(NamedTuple):
    """The whole of a capture: its bytes, and its lines (a last one without a newline counts)."""

    size: int
    lines: int
    columns: int | None = None
    """The columns of the terminal that has shown it: 0 if unknown, None if no terminal has shown it."""

    @property
    def is_terminal(self) -> bool:
        r"""Whether a terminal has shown it. Then text after a `\r` has overwritten the text before it."""
        return self.columns is not None


class ContextLines(NamedTuple):
    """The numbers of lines that are shown before and after each match."""

    before: int
    after: int


class Caps(NamedTuple):
    """The most lines and bytes (`size`) of one answer, and the most bytes of one line of a grep."""

    lines: int = 1_000
    size: int = 64 * 1024
    line_size: int = 2 * 1024

    def within(self, max_bytes: int | None) -> Caps:
        """Return the caps with at most `max_bytes`. A line of a grep then has at most half of that."""
        if max_bytes is None:
            return self
        return self._replace(
            size=min(self.size, max_bytes), line_size=min(self.line_size, max(1, max_bytes // 2))
        )


DEFAULT_CAPS: Final = Caps()


class Wanted(Struct, frozen=True, kw_only=True):
    """The chunks that a reader needs next.

    The first is the chunk that holds newline number `newline` or the one that holds byte `offset`,
    whichever is later (0 and 0: the first of the capture). The last one needed, at the latest, is the
    chunk that holds newline number `last_newline` or the one that holds the last of the `span` bytes
    behind the first chunk, whichever is earlier; None sets no bound. Both are hints for fetching in one
    request: the reader takes as many chunks of these as it needs, and may ask for others after.
    """

    newline: int = 0
    offset: int = 0
    last_newline: int | None = None
    span: int | None = None


def newline_position(data: bytes, number: int) -> int:
    """Return the position of newline `number` of `data`, from 1. Raises `ValueError` if it has fewer."""
    start, left = (0, number) if number <= _FEW_NEWLINES else _bisect_newlines(data, number)
    position = start - 1
    for _ in range(left):
        position = data.index(b"\n", position + 1)
    return position


def _bisect_newlines(data: bytes, number: int) -> tuple[int, int]:
    """Return a position shortly before a newline, and the newline's number from there. Bisects `data`."""
    start, stop, left = 0, len(data), number
    while stop - start > _NEAR_BYTES:
        middle = (start + stop) // 2
        newlines = data.count(b"\n", start, middle)
        if newlines >= left:
            stop = middle
        else:
            start, left = middle, left - newlines
    return start, left
