"""Continues a read when its capture moves: to compacted objects, or to those that complete a partial one."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from overspill.wire import State

from overspill_service.archive.uploading import SEGMENT_SIZE
from overspill_service.catalog.records import Entry
from overspill_service.errors import ObjectMissing
from overspill_service.store_format.frames import compress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.frame_reader import Reader


WORTHWHILE: Final = 4
"""A capture is compacted if its objects then become this many times fewer."""
LARGE_SEGMENT: Final = 2**20
"""A capture whose segments have more stored bytes on average is not compacted."""
LEVEL: Final = 1


def is_scattered(entry: Entry) -> bool:
    """Return whether a capture has so many small objects that it should be compacted."""
    fewest = 1 + entry.stored_size // SEGMENT_SIZE
    is_small = entry.stored_size < len(entry.segments) * LARGE_SEGMENT
    return is_small and len(entry.segments) >= WORTHWHILE * fewest


def may_move(entry: Entry) -> bool:
    """Return whether a capture may move to other objects before a read of it has ended."""
    return entry.state is not State.COMPLETE or is_scattered(entry)


async def stored_frames(archive: Archive, reader: Reader) -> AsyncGenerator[bytes, None]:
    """Yield the capture as zstd frames: those that are stored, and others in place of those that are gone.

    Raises as `Reader.stored_frames`, and `content`, do.
    """
    sent = 0
    try:
        async with aclosing(reader.stored_frames()) as blocks:
            async for frames, stored in blocks:
                yield stored
                sent = reader.frames.raw_start(frames.stop)
    except ObjectMissing:
        async with aclosing(content(archive, reader, sent, reader.frames.size)) as pieces:
            async for piece in pieces:
                yield await archive.cpu.run(compress, piece, LEVEL)


async def content(archive: Archive, reader: Reader, start: int, stop: int) -> AsyncGenerator[bytes, None]:
    """Yield the content from `start` to `stop`. Raises as `Reader.content`, and `Archive.reader`, do."""
    while True:
        try:
            async with aclosing(reader.content(start, stop)) as pieces:
                async for piece in pieces:
                    start += len(piece)
                    yield piece
        except ObjectMissing:
            moved = await archive.catalog.get(reader.entry.tenant, reader.entry.id)
            if not isinstance(moved, Entry) or not _begins_alike(reader.entry, moved, stop):
                raise
            reader = await archive.reader(moved)
        else:
            return


def _begins_alike(entry: Entry, moved: Entry, stop: int) -> bool:
    """Return whether another upload of the capture has the same first `stop` bytes."""
    is_same = entry.state is not State.COMPLETE or entry.sha256 == moved.sha256
    return moved.upload != entry.upload and moved.size >= stop and is_same
