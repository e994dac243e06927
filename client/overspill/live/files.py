"""File objects that write to a live capture, for code that writes to files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer


_NO_DESCRIPTOR: Final = (
    "a live capture has no file descriptor that a child process could write to: "
    "run the command with `capture_process`, or copy its pipe"
)


class LiveFile(io.RawIOBase):
    """A binary file that passes everything to `write`.

    It has no descriptor, so child processes cannot use it.
    """

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write

    def writable(self) -> bool:
        """Return True. Raises `ValueError` once the file is closed."""
        self._require_open()
        return True

    def readinto(self, _buffer: WriteableBuffer, /) -> int:
        """Raise `io.UnsupportedOperation`, as files that are only written to do."""
        raise io.UnsupportedOperation("not readable")

    def fileno(self) -> int:
        """Raise `io.UnsupportedOperation`, as files without a descriptor do."""
        raise io.UnsupportedOperation(_NO_DESCRIPTOR)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of `data`. Raises `TypeError` unless it holds bytes: `bytes(5)` would be five zeros."""
        self._require_open()
        return self._write(bytes(memoryview(data)))

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def text_file(write: Callable[[bytes], int]) -> io.TextIOWrapper:
    """Return a text file of UTF-8 without a buffer.

    Bytes that the text has as lone surrogates come out unchanged.
    """
    return io.TextIOWrapper(
        LiveFile(write),  # type: ignore[arg-type]  # typeshed wants a name
        encoding="utf-8",
        errors="surrogateescape",
        newline="",
        write_through=True,
    )
