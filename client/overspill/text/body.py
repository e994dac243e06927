"""The bytes of an output that is to be kept: in memory, or in a file where they are too many for that."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_BLOCK_BYTES: Final = 1024 * 1024


class FileBody:
    """`size` bytes in a file of its own, which goes with this object unless somebody has moved it away."""

    def __init__(self, path: Path, *, size: int, lines: int, sha256: bytes) -> None:
        self.path = path
        self.size = size
        self.lines = lines
        self.sha256 = sha256
        self._gone = weakref.finalize(self, _remove, path, os.getpid())

    def __len__(self) -> int:
        return self.size

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; raises `OSError`."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in blocks. Raises `OSError`."""
        with self.path.open("rb") as file:
            while piece := file.read(READ_BLOCK_BYTES):
                yield piece

    def close(self) -> None:
        """Remove the file. Nothing can be read any more."""
        self._gone()


def _remove(path: Path, owner: int) -> None:
    """A forked child leaves its parent's files alone."""
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


Body: TypeAlias = str | bytes | FileBody
