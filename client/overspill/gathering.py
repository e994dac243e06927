r"""Pieces of an output, collected as they come: in memory while they are few, then in a file.

Sizes, lines and digest are those of the stored bytes, counted on the way: a character or a `\r\n` that is
split between two pieces is whole again behind them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.body import Filed

if TYPE_CHECKING:
    from typing import BinaryIO

    from overspill.body import Body

IN_MEMORY: Final = 1024 * 1024
MOST: Final = 4 * 1024 * 1024 * 1024
_BUFFER: Final = 256 * 1024


class Full(Exception):
    """The gathering has as many bytes as it may have, or there is no more room on the disk."""


class Gathering:
    """Not for several threads at once. Keeps at most `most` bytes; `close` removes what was not finished.

    `folder` is where the file goes, as for `tempfile`: one that nobody else can read.
    """

    def __init__(self, *, in_memory: int = IN_MEMORY, most: int = MOST, folder: Path | None = None) -> None:
        self.size = 0
        self._in_memory = in_memory
        self._most = most
        self._folder = folder
        self._pieces: list[str | bytes] = []
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._newlines = 0
        self._ends_line = True
        self._sha256 = hashlib.sha256()

    def write(self, piece: str | bytes) -> None:
        """Raises `Full`, and keeps what came before."""
        data = measure.encode(piece) if isinstance(piece, str) else piece
        if self.size + len(data) > self._most:
            raise Full(f"more than {measure.readable(self._most)}")
        if self._file is None and self.size + len(data) <= self._in_memory:
            self._pieces.append(piece)
            self.size += len(data)
            return
        self._append(data)

    def finish(self) -> Body:
        """All that was written: text where all pieces were text and are in memory. Raises `Full`."""
        if self._file is None:
            return _joined(self._pieces)
        path, file = self._path, self._file
        assert path is not None
        try:
            file.close()
        except OSError as error:
            raise Full(_reason(error)) from error
        self._path = self._file = None
        lines = self._newlines + (not self._ends_line)
        return Filed(path, size=self.size, lines=lines, sha256=self._sha256.digest())

    def close(self) -> None:
        """Removes the file, unless it has become a `Filed`."""
        self._pieces.clear()
        if self._file is None or self._path is None:
            return
        file, path, self._file, self._path = self._file, self._path, None, None
        try:
            file.close()
        except OSError:
            pass  # its bytes are not wanted any more
        finally:
            path.unlink(missing_ok=True)

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _append(self, data: bytes) -> None:
        try:
            self._to_file(data)
        except OSError as error:
            raise Full(_reason(error)) from error

    def _to_file(self, data: bytes) -> None:
        if self._file is None:
            number, name = tempfile.mkstemp(prefix="overspill-", suffix=".out", dir=self._folder)
            self._path, self._file = Path(name), os.fdopen(number, "wb", buffering=_BUFFER)
            for piece in self._pieces:
                self._put(self._file, measure.encode(piece) if isinstance(piece, str) else piece)
            self._pieces.clear()
        self._put(self._file, data)
        self.size += len(data)

    def _put(self, file: BinaryIO, data: bytes) -> None:
        file.write(data)
        self._sha256.update(data)
        self._newlines += data.count(b"\n")
        self._ends_line = data.endswith(b"\n") if data else self._ends_line


def _joined(pieces: list[str | bytes]) -> str | bytes:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        return "".join(texts)
    return b"".join(measure.encode(piece) if isinstance(piece, str) else piece for piece in pieces)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
