"""Reads on while a capture is moved to other objects: by compaction, or as a partial one is completed."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from overspill.wire import State

from overspill_service.catalog.records import Entry
from overspill_service.errors import ObjectMissing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from overspill_service.archive.archive import Archive
    from overspill_service.archive.frame_reader import Reader


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
    """Return whether another upload has the same first `stop` bytes: one that ended never changes them."""
    is_same = entry.state is not State.COMPLETE or entry.sha256 == moved.sha256
    return moved.upload != entry.upload and moved.size >= stop and is_same
