r"""Pieces of an output, collected as they come: in memory while they are few, then in a file.

Where the file cannot be made or grow, they stay in memory as long as they are not too many for that.

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

from overspill.text import measure
from overspill.text.body import READ_BLOCK_BYTES, FileBody

if TYPE_CHECKING:
    from overspill.text.body import Body

MEMORY_BYTES: Final = 1024 * 1024
MEMORY_BYTES_WITHOUT_FILE: Final = 16 * 1024 * 1024
"""Bytes that are held in memory at most where the disk takes no file."""
MAX_BUFFER_BYTES: Final = 4 * 1024 * 1024 * 1024
_WRITE_BATCH_BYTES: Final = 256 * 1024
_REMARK_BYTES: Final = 4096
_CHANGED: Final = "the temporary file has another size than was written to it"


class BufferFull(Exception):
    """The gathering has as many bytes as it may have, or the disk takes no more."""


class Buffer:
    """Not for several threads at once. Keeps at most `most` bytes; `close` removes what was not finished.

    `folder` is where the file goes, as for `tempfile`; nobody else can read the file. `missing` says why
    not all that was written is kept; it is empty where all is.
    """

    def __init__(
        self, *, in_memory: int = MEMORY_BYTES, most: int = MAX_BUFFER_BYTES, folder: Path | None = None
    ) -> None:
        self.size: int = 0
        self.missing: str = ""
        self._in_memory = in_memory
        self._most = most
        self._folder = folder
        self._pieces: list[str | bytes] = []
        self._file: _TempFile | None = None
        self._ends_line = True

    def write(self, piece: str | bytes) -> None:
        """Raises `Full`; what came before is kept."""
        try:
            if isinstance(piece, str) and len(piece) > self._in_memory:
                for part in measure.encoded_pieces(piece):
                    self._write(part, part)
            else:
                self._write(piece, measure.encode(piece) if isinstance(piece, str) else piece)
        except BufferFull as error:
            self.missing = str(error)
            raise

    def _write(self, piece: str | bytes, data: bytes) -> None:
        if self.size + len(data) > self._most:
            raise BufferFull(f"more than {measure.readable_size(self._most)}")
        if self._file is None and self.size + len(data) > self._in_memory:
            self._move(self.size + len(data))
        if self._file is None:
            self._pieces.append(piece)
        else:
            self._write_to(self._file, data)
        self.size += len(data)
        self._ends_line = data.endswith(b"\n") if data else self._ends_line

    def remark(self, text: str) -> None:
        """Add a line that says why there is no more."""
        self.add_line(f"({text})")

    def add_line(self, text: str) -> None:
        """Add a line at the end, however full it is."""
        line = f"{'' if self._ends_line else chr(10)}{text}\n"
        self.size += len(measure.encode(line))
        if self._file is None:
            self._pieces.append(line)
        else:
            self._file.remark(measure.encode(line))

    def finish(self) -> Body:
        """Return all that is kept: text where all pieces were text and are in memory. Sets `missing`.

        Raises `OSError`.
        """
        if self._file is None:
            return _joined(self._pieces)
        file, self._file = self._file, None
        body = file.finish()
        self.missing = self.missing or file.missing
        return body

    def close(self) -> None:
        """Remove the file, unless it has become a `FileBody`."""
        self._pieces.clear()
        file, self._file = self._file, None
        if file is not None:
            file.remove()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _move(self, size: int) -> None:
        """Let what is in memory go to a file; it stays if that fails. Raises `Full` if `size` is too much."""
        file = None
        try:
            file = _TempFile(self._folder)
            for piece in self._pieces:
                file.write(measure.encode(piece) if isinstance(piece, str) else piece)
            file.flush()
        except (OSError, BufferFull) as error:
            if file is not None:
                file.remove()
            self._stay(size, error)
            return
        self._pieces.clear()
        self._file = file

    def _write_to(self, file: _TempFile, data: bytes) -> None:
        """Write to the file; where it cannot grow, take all back into memory. Raises `Full`."""
        size = self.size + len(data)
        try:
            file.write(data)
        except BufferFull as error:
            if size > MEMORY_BYTES_WITHOUT_FILE:
                raise
            self._pieces = [file.taken_back()]
            self._stay(size, error)

    def _stay(self, size: int, error: OSError | BufferFull) -> None:
        """Go on in memory without a file. Raises `Full` if `size` is too much for that."""
        self._in_memory, self._file = MEMORY_BYTES_WITHOUT_FILE, None
        if size > MEMORY_BYTES_WITHOUT_FILE:
            raise BufferFull(_reason(error) if isinstance(error, OSError) else str(error)) from error


class _TempFile:
    """A file that grows until the disk is full, and says exactly what is in it."""

    def __init__(self, folder: Path | None) -> None:
        self._number, name = tempfile.mkstemp(prefix="overspill-", suffix=".out", dir=folder)
        self._path = Path(name)
        self._owner = os.getpid()
        self._waiting = bytearray()
        self._told = _Totals()
        self.missing = ""

    def write(self, data: bytes) -> None:
        """Raises `Full`."""
        self._waiting += data
        if len(self._waiting) >= _WRITE_BATCH_BYTES:
            self.flush()

    def remark(self, line: bytes) -> None:
        """At the end; where the disk is full, in place of the last bytes."""
        with suppress(BufferFull):
            self.write(line)
            self.flush()
            return
        end = os.fstat(self._number).st_size
        with suppress(OSError):
            os.ftruncate(self._number, max(0, end - _REMARK_BYTES))
            os.lseek(self._number, 0, os.SEEK_END)
            os.write(self._number, line)

    def finish(self) -> FileBody:
        """Return what is in the file, counted anew where that is not all that was written."""
        with suppress(BufferFull):
            self.flush()
        try:
            size = os.fstat(self._number).st_size
        finally:
            os.close(self._number)
        is_right = not self.missing and size == self._told.size
        told = self._told if is_right else _Totals.of(self._path)
        if not is_right:
            self.missing = self.missing or _CHANGED
        return FileBody(self._path, size=told.size, lines=told.lines, sha256=told.sha256.digest())

    def taken_back(self) -> bytes:
        """Return all that was written, and remove the file. Raises `Full` if it cannot be read."""
        try:
            data = self._path.read_bytes()[: self._told.size] + self._waiting
        except OSError as error:
            raise BufferFull(_reason(error)) from error
        self.remove()
        return bytes(data)

    def remove(self) -> None:
        with suppress(OSError):
            os.close(self._number)
        if os.getpid() == self._owner:  # a forked child leaves its parent's file alone
            self._path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Raises `Full`; what was not written is waiting still."""
        if self.missing:
            raise BufferFull(self.missing)
        try:
            _write_all(self._number, self._waiting)
        except OSError as error:
            self.missing = _reason(error)
            raise BufferFull(self.missing) from error
        self._told.count(bytes(self._waiting))
        self._waiting.clear()


def _write_all(number: int, data: bytearray) -> None:
    """Write all of `data`: one call of the system may take only a part. Raises `OSError`."""
    written = 0
    with memoryview(data) as view:
        while written < len(view):
            written += os.write(number, view[written:])


class _Totals:
    """Size, lines and digest of bytes that go by."""

    def __init__(self) -> None:
        self.size = self._newlines = 0
        self.sha256 = hashlib.sha256()
        self._ends_line = True

    @classmethod
    def of(cls, path: Path) -> _Totals:
        told = cls()
        with path.open("rb") as file:
            while piece := file.read(READ_BLOCK_BYTES):
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
