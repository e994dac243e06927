r"""Where lines begin and end in a file, found without holding more than a block of it.

Lines end at `\n`; the last one may lack it.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 256 * 1024
_FIRST: Final = 4 * 1024
"""Bytes read at first for the end of a line, which is near as a rule; then more and more."""
_GROWTH: Final = 8


class Bytes:
    """The first `size` bytes of a file, read by place. Safe to use from several threads. Raises `OSError`."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._descriptor = file, file.fileno()
        self.size = size

    def at(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, as far as there are any."""
        wanted = min(stop, self.size) - start
        pieces = []
        while wanted > 0 and (piece := os.pread(self._descriptor, wanted, start)):
            pieces.append(piece)
            start, wanted = start + len(piece), wanted - len(piece)
        return b"".join(pieces)

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop and (block := self.at(start, min(start + BLOCK, stop))):
            yield block
            start += len(block)

    def line_end(self, position: int) -> int:
        r"""Where the first `\n` from `position` on stands; the size where there is none."""
        length = _FIRST
        while position < self.size and (block := self.at(position, position + length)):
            found = block.find(b"\n")
            if found >= 0:
                return position + found
            position, length = position + len(block), min(_GROWTH * length, BLOCK)
        return self.size

    def line_start(self, position: int) -> int:
        """Where the line begins that holds the byte at `position`."""
        length = _FIRST
        while position > 0:
            low = max(0, position - length)
            found = self.at(low, position).rfind(b"\n")
            if found >= 0:
                return low + found + 1
            position, length = low, min(_GROWTH * length, BLOCK)
        return 0

    def start_of_line(self, number: int) -> int:
        """Where line `number`, from 1, begins; the size where there are fewer lines."""
        left, start = number - 1, 0
        for block in self.blocks(0, self.size) if left else ():
            count = block.count(b"\n")
            if count >= left:
                return start + newline_position(block, left) + 1
            left, start = left - count, start + len(block)
        return start


def newline_position(data: bytes, number: int) -> int:
    """Position of the `number`-th newline of `data`, from 1. Raises `ValueError` where it has fewer."""
    position = -1
    for _ in range(number):
        position = data.index(b"\n", position + 1)
    return position
