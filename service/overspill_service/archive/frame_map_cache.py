"""A cache of the frame maps of captures that were recently read."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overspill_service.store_format.frame_map import FrameMap


class FrameMapCache:
    """Frame maps by `Entry.version`, `limit` bytes at most. The least recently used map is dropped first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._maps: OrderedDict[str, FrameMap] = OrderedDict()
        self.memory_size = 0
        """Bytes of memory that all maps take."""

    def __len__(self) -> int:
        return len(self._maps)

    def get(self, upload: str) -> FrameMap | None:
        found = self._maps.get(upload)
        if found is not None:
            self._maps.move_to_end(upload)
        return found

    def add(self, upload: str, frames: FrameMap) -> None:
        """Keep a map, unless it is larger than the whole cache."""
        self.discard(upload)
        if frames.memory_size > self._limit:
            return
        self._maps[upload] = frames
        self.memory_size += frames.memory_size
        while self.memory_size > self._limit:
            self.discard(next(iter(self._maps)))

    def discard(self, upload: str) -> None:
        """Drop the map of an upload, for example of a removed capture."""
        dropped = self._maps.pop(upload, None)
        if dropped is not None:
            self.memory_size -= dropped.memory_size
