"""Converts lines of a capture to bytes and back by reading one frame. Also reads short ranges of bytes."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from overspill.reading.chunks import newline_position

if TYPE_CHECKING:
    from overspill.reading.chunks import Chunk

    from overspill_service.archive.frame_reader import Reader


async def offset_of_line(reader: Reader, line: int) -> int:
    """Return the offset at which a line begins. Lines count from 1.

    A line after the last one begins at the end.
    """
    frames = reader.frames
    if line <= 1:
        return 0
    if line - 1 > frames.newlines:
        return frames.size
    chunk = await _chunk(reader, frames.frame_at_newline(line - 1))
    return chunk.start + newline_position(chunk.data, line - 1 - chunk.newlines) + 1


async def line_at(reader: Reader, offset: int) -> tuple[int, int]:
    """Return the line that the byte at `offset` belongs to, and how many bytes of it lie before that.

    Behind the last byte it is the line that would go on there.
    """
    if offset <= 0 or not len(reader.frames):
        return 1, 0
    offset = min(offset, reader.frames.size)
    found = reader.frames.frames_of_bytes(offset - 1, offset)
    chunk = await _chunk(reader, found.start)
    before = chunk.data[: offset - chunk.start]
    newlines = before.count(b"\n")
    line = chunk.newlines + newlines + 1
    if newlines or not chunk.start:
        return line, len(before) - (before.rfind(b"\n") + 1)
    return line, offset - await offset_of_line(reader, line)


async def bytes_between(reader: Reader, start: int, stop: int) -> bytes:
    """Return the bytes of a short range. All of them are in memory."""
    async with aclosing(reader.content(start, stop)) as pieces:
        return b"".join([piece async for piece in pieces])


async def _chunk(reader: Reader, frame: int) -> Chunk:
    async with aclosing(reader.chunks(range(frame, frame + 1))) as batches:
        async for batch in batches:
            return batch[0]
    raise IndexError(frame)
