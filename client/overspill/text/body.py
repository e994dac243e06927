"""The bytes of an output that is kept: in memory, or in a file if they are many."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_BLOCK_BYTES: Final = 1024 * 1024


class FileBody:
    """`size` bytes in a temporary file. The file is removed with this object, unless it was moved away."""

    def __init__(self, path: Path, *, size: int, lines: int, sha256: bytes) -> None:
        self.path = path
        self.size = size
        self.lines = lines
        self.sha256 = sha256
        self._finalizer = weakref.finalize(self, _remove, path, os.getpid())

    def __len__(self) -> int:
        return self.size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset` on. Raises `OSError`."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes in pieces of up to 1 MiB. Raises `OSError`."""
        with self.path.open("rb") as file:
            while piece := file.read(READ_BLOCK_BYTES):
                yield piece

    def close(self) -> None:
        """Remove the file. Nothing can be read after that."""
        self._finalizer()


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of `data`: one call of the system may take only a part. Raises `OSError`."""
    with memoryview(data) as view:
        written = 0
        while written < len(view):
            written += os.write(descriptor, view[written:])


def _remove(path: Path, owner: int) -> None:
    """Remove a file of this process. A forked child leaves its parent's files alone."""
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


Body: TypeAlias = str | bytes | FileBody
"""The content of an output: text, bytes, or bytes in a file."""
