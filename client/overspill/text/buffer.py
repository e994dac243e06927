r"""Collect an output as it comes: in memory while it is small, then in a temporary file.

    memory, up to 1 MiB  ->  file, up to 4 GiB
                         ->  memory, up to 16 MiB, if the disk takes no file

Sizes, lines and digest are those of the stored bytes: a character or a `\r\n` that is split between two
pieces is whole again in the body.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from overspill.text import encoding, quantities
from overspill.text.body import READ_BLOCK_BYTES, FileBody, write_all
from overspill.text.long_files import long_file_folder

if TYPE_CHECKING:
    from overspill.text.body import Body

MEMORY_BYTES: Final = 1024 * 1024
MEMORY_BYTES_WITHOUT_FILE: Final = 16 * 1024 * 1024
"""The most bytes held in memory if the disk takes no file."""
MAX_BUFFER_BYTES: Final = 4 * 1024 * 1024 * 1024
_WRITE_BATCH_BYTES: Final = 256 * 1024
_REMARK_BYTES: Final = 4096
"""Bytes at the end of a file on a full disk that make room for a remark."""
_CHANGED: Final = "the temporary file has another size than was written to it"


class CannotBuffer(Exception):
    """The buffer is full, or the disk is."""


class Buffer:
    """Keeps up to `max_bytes`, of which `memory_bytes` in memory. Not for several threads at once.

    Nobody else can read the file. `missing` says why some of the bytes are not kept. It is empty if all are.
    """

    def __init__(self, *, memory_bytes: int = MEMORY_BYTES, max_bytes: int = MAX_BUFFER_BYTES) -> None:
        self.size: int = 0
        self.missing: str = ""
        self._memory_bytes = memory_bytes
        self._max_bytes = max_bytes
        self._pieces: list[str | bytes] = []
        self._file: _TempFile | None = None
        self._ends_line = True

    def write(self, piece: str | bytes) -> None:
        """Add a piece. Raises `CannotBuffer`; earlier pieces are kept."""
        try:
            if isinstance(piece, str) and len(piece) > self._memory_bytes:
                for part in encoding.encoded_pieces(piece):
                    self._write(part, part)
            else:
                self._write(piece, encoding.bytes_of(piece))
        except CannotBuffer as error:
            self.missing = str(error)
            raise

    def _write(self, piece: str | bytes, data: bytes) -> None:
        if self.size + len(data) > self._max_bytes:
            raise CannotBuffer(f"more than {quantities.readable_size(self._max_bytes)}")
        if self._file is None and self.size + len(data) > self._memory_bytes:
            self._move_to_file(self.size + len(data))
        if self._file is None:
            self._pieces.append(piece)
        else:
            self._write_to(self._file, data)
        self.size += len(data)
        self._ends_line = data.endswith(b"\n") if data else self._ends_line

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` of the bytes written so far, from `offset` on. Raises `OSError`."""
        if self._file is not None:
            return self._file.read(offset, limit)
        return b"".join(map(encoding.bytes_of, self._pieces))[offset : offset + limit]

    def add_remark(self, text: str) -> None:
        """Add a line in brackets that says why there is no more."""
        self.add_line(f"({text})")

    def add_line(self, text: str) -> None:
        """Add a line at the end, even if the buffer is full."""
        line = f"{'' if self._ends_line else chr(10)}{text}\n"
        self.size += len(encoding.encode(line))
        if self._file is None:
            self._pieces.append(line)
        else:
            self._file.add_last_line(encoding.encode(line))

    def finish(self) -> Body:
        """Return everything that is kept. It is text if all pieces were text and are in memory.

        Sets `missing`. Raises `OSError`.
        """
        if self._file is None:
            return encoding.joined(self._pieces)
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

    def _move_to_file(self, size: int) -> None:
        """Write the bytes in memory to a file. If that fails, stay in memory, or raise `CannotBuffer`."""
        file = None
        try:
            file = _TempFile()
            for piece in self._pieces:
                file.write(encoding.bytes_of(piece))
            file.flush()
        except (OSError, CannotBuffer) as error:
            if file is not None:
                file.remove()
            self._stay_in_memory(size, error)
            return
        self._pieces.clear()
        self._file = file

    def _write_to(self, file: _TempFile, data: bytes) -> None:
        """Write to the file. If it cannot grow, move everything back into memory, or raise `CannotBuffer`."""
        size = self.size + len(data)
        try:
            file.write(data)
        except CannotBuffer as error:
            if size > MEMORY_BYTES_WITHOUT_FILE:
                raise
            self._pieces = [file.read_back()]
            self._stay_in_memory(size, error)

    def _stay_in_memory(self, size: int, error: OSError | CannotBuffer) -> None:
        """Go on without a file. Raises `CannotBuffer` if `size` is too much for that."""
        self._memory_bytes, self._file = MEMORY_BYTES_WITHOUT_FILE, None
        if size > MEMORY_BYTES_WITHOUT_FILE:
            raise CannotBuffer(_reason(error) if isinstance(error, OSError) else str(error)) from error


class _TempFile:
    """A file that grows until the disk is full, and knows exactly how many bytes it has."""

    def __init__(self) -> None:
        self._descriptor, name = tempfile.mkstemp(prefix="overspill-", suffix=".out", dir=long_file_folder())
        self._path = Path(name)
        self._owner = os.getpid()
        self._unwritten = bytearray()
        self._totals = _Totals()
        self.missing = ""

    def write(self, data: bytes) -> None:
        """Add bytes. Raises `CannotBuffer`."""
        self._unwritten += data
        if len(self._unwritten) >= _WRITE_BATCH_BYTES:
            self.flush()

    def add_last_line(self, line: bytes) -> None:
        """Add a line at the end; on a full disk, in place of the last bytes."""
        with suppress(CannotBuffer):
            self.write(line)
            self.flush()
            return
        end = os.fstat(self._descriptor).st_size
        with suppress(OSError):
            os.ftruncate(self._descriptor, max(0, end - _REMARK_BYTES))
            os.lseek(self._descriptor, 0, os.SEEK_END)
            os.write(self._descriptor, line)

    def finish(self) -> FileBody:
        """Return the content of the file, counted again if it differs from the written bytes."""
        with suppress(CannotBuffer):
            self.flush()
        try:
            size = os.fstat(self._descriptor).st_size
        finally:
            os.close(self._descriptor)
        if self.missing or size != self._totals.size:
            self.missing = self.missing or _CHANGED
            return counted(self._path)
        return self._totals.body(self._path)

    def read(self, offset: int, limit: int) -> bytes:
        with suppress(CannotBuffer):
            self.flush()
        return os.pread(self._descriptor, limit, offset)

    def read_back(self) -> bytes:
        """Return all written bytes, and remove the file. Raises `CannotBuffer` if it cannot be read."""
        try:
            data = self._path.read_bytes()[: self._totals.size] + self._unwritten
        except OSError as error:
            raise CannotBuffer(_reason(error)) from error
        self.remove()
        return bytes(data)

    def remove(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)
        if os.getpid() == self._owner:  # a forked child leaves its parent's file alone
            self._path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Write waiting bytes. Raises `CannotBuffer`, and then keeps them."""
        if self.missing:
            raise CannotBuffer(self.missing)
        try:
            write_all(self._descriptor, self._unwritten)
        except OSError as error:
            self.missing = _reason(error)
            raise CannotBuffer(self.missing) from error
        self._totals.count(bytes(self._unwritten))
        self._unwritten.clear()


def counted(path: Path) -> FileBody:
    """Return a body in a file, measured by reading the file. Raises `OSError`."""
    totals = _Totals()
    with path.open("rb") as file:
        while block := file.read(READ_BLOCK_BYTES):
            totals.count(block)
    return totals.body(path)


class _Totals:
    """Size, lines and digest of bytes that go by."""

    def __init__(self) -> None:
        self.size = self._newlines = 0
        self._sha256 = hashlib.sha256()
        self._ends_line = True

    def body(self, path: Path) -> FileBody:
        """Return the body in the file at `path` that has these bytes."""
        lines = self._newlines + (not self._ends_line)
        return FileBody(path, size=self.size, lines=lines, sha256=self._sha256.digest())

    def count(self, data: bytes) -> None:
        self.size += len(data)
        self._sha256.update(data)
        self._newlines += data.count(b"\n")
        self._ends_line = data.endswith(b"\n") if data else self._ends_line


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
