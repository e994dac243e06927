r"""Pieces of an output, collected as they come: in memory while they are few, then in a file.

Sizes, lines and digest are those of the stored bytes: a character or a `\r\n` that is split between two
pieces is whole again behind them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.body import PIECE, Filed

if TYPE_CHECKING:
    from overspill.body import Body

IN_MEMORY: Final = 1024 * 1024
MOST: Final = 4 * 1024 * 1024 * 1024
_BUFFER: Final = 256 * 1024
_ROOM_FOR_A_REMARK: Final = 4096


class Full(Exception):
    """The gathering has as many bytes as it may have, or the disk takes no more."""


class Gathering:
    """Not for several threads at once. Keeps at most `most` bytes; `close` removes what was not finished.

    `folder` is where the file goes, as for `tempfile`; nobody else can read the file.
    """

    def __init__(self, *, in_memory: int = IN_MEMORY, most: int = MOST, folder: Path | None = None) -> None:
        self.size = 0
        self._in_memory = in_memory
        self._most = most
        self._folder = folder
        self._pieces: list[str | bytes] = []
        self._file: _File | None = None
        self._ends_line = True

    def write(self, piece: str | bytes) -> None:
        """Raises `Full`; what came before is kept."""
        if isinstance(piece, str) and len(piece) > self._in_memory:
            for part in measure.encoded_pieces(piece):
                self._write(part, part)
        else:
            self._write(piece, measure.encode(piece) if isinstance(piece, str) else piece)

    def _write(self, piece: str | bytes, data: bytes) -> None:
        if self.size + len(data) > self._most:
            raise Full(f"more than {measure.readable(self._most)}")
        if self._file is None and self.size + len(data) > self._in_memory:
            self._file = self._moved()
        if self._file is None:
            self._pieces.append(piece)
        else:
            self._file.write(data)
        self.size += len(data)
        self._ends_line = data.endswith(b"\n") if data else self._ends_line

    def remark(self, text: str) -> None:
        """Adds a line that says why there is no more."""
        line = f"{'' if self._ends_line else chr(10)}({text})\n"
        self.size += len(measure.encode(line))
        if self._file is None:
            self._pieces.append(line)
        else:
            self._file.remark(measure.encode(line))

    def finish(self) -> Body:
        """All that was written: text where all pieces were text and are in memory. Raises `OSError`."""
        if self._file is None:
            return _joined(self._pieces)
        file, self._file = self._file, None
        return file.finish()

    def close(self) -> None:
        """Removes the file, unless it has become a `Filed`."""
        self._pieces.clear()
        file, self._file = self._file, None
        if file is not None:
            file.remove()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _moved(self) -> _File:
        """What was in memory, as a file. Raises `Full`."""
        try:
            file = _File(self._folder)
        except OSError as error:
            raise Full(_reason(error)) from error
        self._file = file
        for piece in self._pieces:
            file.write(measure.encode(piece) if isinstance(piece, str) else piece)
        self._pieces.clear()
        return file


class _File:
    """A file that grows until the disk is full, and says exactly what is in it."""

    def __init__(self, folder: Path | None) -> None:
        self._number, name = tempfile.mkstemp(prefix="overspill-", suffix=".out", dir=folder)
        self._path = Path(name)
        self._owner = os.getpid()
        self._waiting = bytearray()
        self._told = _Told()
        self._is_whole = True

    def write(self, data: bytes) -> None:
        if len(self._waiting) + len(data) >= _BUFFER:
            self._flush()
        if len(data) >= _BUFFER:
            self._put(data)
        else:
            self._waiting += data

    def remark(self, line: bytes) -> None:
        """At the end; where the disk is full, in place of the last bytes."""
        with suppress(Full):
            self.write(line)
            self._flush()
            return
        end = os.fstat(self._number).st_size
        with suppress(OSError):
            os.ftruncate(self._number, max(0, end - _ROOM_FOR_A_REMARK))
            os.lseek(self._number, 0, os.SEEK_END)
            os.write(self._number, line)

    def finish(self) -> Filed:
        with suppress(Full):
            self._flush()
        os.close(self._number)
        told = self._told if self._is_whole else _Told.of(self._path)
        return Filed(self._path, size=told.size, lines=told.lines, sha256=told.sha256.digest())

    def remove(self) -> None:
        with suppress(OSError):
            os.close(self._number)
        if os.getpid() == self._owner:  # a forked child leaves its parent's file alone
            self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        waiting, self._waiting = bytes(self._waiting), bytearray()
        self._put(waiting)

    def _put(self, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._number, rest) :]
        except OSError as error:
            self._is_whole = False
            raise Full(_reason(error)) from error
        self._told.count(data)


class _Told:
    """Size, lines and digest of bytes that go by."""

    def __init__(self) -> None:
        self.size = self._newlines = 0
        self.sha256 = hashlib.sha256()
        self._ends_line = True

    @classmethod
    def of(cls, path: Path) -> _Told:
        told = cls()
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                told.count(piece)
        return told

    @property
    def lines(self) -> int:
        return self._newlines + (not self._ends_line)

    def count(self, data: bytes) -> None:
        self.size += len(data)
        self.sha256.update(data)
        self._newlines += data.count(b"\n")
        self._ends_line = data.endswith(b"\n") if data else self._ends_line


def _joined(pieces: list[str | bytes]) -> str | bytes:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        return "".join(texts)
    return b"".join(measure.encode(piece) if isinstance(piece, str) else piece for piece in pieces)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
