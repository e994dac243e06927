"""The frame maps of captures that were read lately, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overspill_service.store_format.frame_map import FrameMap


class FrameMapCache:
    """Frame maps by the name of their upload, `limit` bytes at most; those not used for longest go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._maps: OrderedDict[str, FrameMap] = OrderedDict()
        self.memory_size = 0
        """Bytes that the maps take."""

    def __len__(self) -> int:
        return len(self._maps)

    def get(self, upload: str) -> FrameMap | None:
        found = self._maps.get(upload)
        if found is not None:
            self._maps.move_to_end(upload)
        return found

    def add(self, upload: str, frames: FrameMap) -> None:
        """Keep a map, unless it alone is too large."""
        self.forget(upload)
        if frames.memory_size > self._limit:
            return
        self._maps[upload] = frames
        self.memory_size += frames.memory_size
        while self.memory_size > self._limit:
            self.forget(next(iter(self._maps)))

    def forget(self, upload: str) -> None:
        """Drop a map, such as that of a capture that was removed."""
        dropped = self._maps.pop(upload, None)
        if dropped is not None:
            self.memory_size -= dropped.memory_size
