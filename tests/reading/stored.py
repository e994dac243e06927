"""Content cut into chunks, which serves what a read wants as a frame map would."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeVar

from overspill.reading.chunks import Chunk, Extent, Wanted

if TYPE_CHECKING:
    from overspill.reading.grep import Search
    from overspill.wire import Text
    from overspill_service.archive.inspection import BoundedRead

T = TypeVar("T")


class Capture:
    """`given` counts the chunks that were read."""

    def __init__(self, content: bytes, cuts: list[int]) -> None:
        bounds = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
        self.content = content
        self.chunks: list[Chunk] = []
        newlines = 0
        for a, b in itertools.pairwise(bounds):
            self.chunks.append(Chunk(content[a:b], a, newlines, utf8=is_utf8(content[a:b])))
            newlines += content.count(b"\n", a, b)
        self.extent = Extent(
            len(content), content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
        )
        self.given = 0

    def holding_newline(self, number: int) -> int:
        return max((i for i, chunk in enumerate(self.chunks) if chunk.newlines < number), default=0)

    def holding_byte(self, offset: int) -> int:
        return max((i for i, chunk in enumerate(self.chunks) if chunk.start <= offset), default=0)

    def wanted(self, wanted: Wanted) -> list[Chunk]:
        first = max(self.holding_newline(wanted.newline), self.holding_byte(wanted.offset))
        last = len(self.chunks) - 1
        if wanted.last_newline is not None:
            last = min(last, self.holding_newline(wanted.last_newline))
        if wanted.span is not None:
            end = self.chunks[first].start + len(self.chunks[first].data)
            last = min(last, self.holding_byte(end + wanted.span - 1))
        return self.chunks[first : max(first, last) + 1]

    def search(self, search: Search) -> Text:
        """The answer of a grep: chunks from the first one wanted on, downwards or upwards."""
        while (wanted := search.begin_part()) is not None:
            near = self.wanted(wanted)
            last = near[0] if wanted.span is None else near[-1]
            downwards = self.chunks[self.chunks.index(near[0]) :]
            for chunk in self.chunks[self.chunks.index(last) :: -1] if search.backwards else downwards:
                search.feed(chunk)
                self.given += 1
                if search.wanted is None or search.has_jumped:
                    break
        return search.answer()

    def read(self, read: BoundedRead[T]) -> T:
        while read.wanted is not None:
            for chunk in self.wanted(read.wanted):
                read.feed(chunk)
                self.given += 1
                if read.wanted is None:
                    break
        return read.answer()


def is_utf8(data: bytes) -> bool:
    return data.decode(errors="replace").encode() == data


def split(content: bytes) -> list[bytes]:
    return [line + b"\n" for line in content.split(b"\n")[:-1]] + [content.rpartition(b"\n")[2]] * (
        not content.endswith(b"\n") and content != b""
    )


def capture(content: bytes, *cuts: int) -> Capture:
    return Capture(content, list(cuts))
