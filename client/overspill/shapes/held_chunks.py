"""Chunks of a stream that are held back while all of them may stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.shapes.records import MAX_HELD_BYTES
from overspill.text import measure
from overspill.text.limits import exceeds

if TYPE_CHECKING:
    from overspill.text.limits import Limits

    Chunk = str | bytes


class HeldChunks:
    """Chunks that are held back, and whether they are within `limits` together. No I/O."""

    def __init__(self, limits: Limits) -> None:
        self.chunks: list[Chunk] = []
        self._limits = limits
        self._size = self._chars = self._newlines = 0
        self._ends_line = True

    def take(self, chunk: Chunk) -> bool:
        """Add a chunk. Return whether all may still be within the limits; tokens are counted at the end."""
        self.chunks.append(chunk)
        if chunk:
            newline: Any = "\n" if isinstance(chunk, str) else b"\n"
            self._size += measure.size(chunk)
            self._chars += len(chunk)
            self._newlines += chunk.count(newline)
            self._ends_line = chunk[-1:] == newline
        return self._may_fit()

    def fits(self) -> bool:
        """Return whether all chunks are within all limits."""
        if not self._may_fit():
            return False
        if self._limits.max_tokens is None:
            return True
        texts = [chunk if isinstance(chunk, str) else chunk.decode(errors="replace") for chunk in self.chunks]
        return not exceeds("".join(texts), self._limits)

    def _may_fit(self) -> bool:
        max_bytes, limits = min(self._limits.max_bytes, MAX_HELD_BYTES), self._limits
        return (
            self._size <= max_bytes
            and self._newlines + (not self._ends_line) <= limits.max_lines
            and (limits.max_chars is None or self._chars <= limits.max_chars)
        )
