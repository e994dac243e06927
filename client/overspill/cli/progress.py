"""A progress bar for long transfers, on a terminal that nothing else is written to meanwhile."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import typer

from overspill.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

LONG: Final = 8 * 1024 * 1024
"""Bytes from which a transfer is worth a bar."""


@contextmanager
def watched(file: IO[bytes]) -> Iterator[IO[bytes] | Watched]:
    """`file`, with a bar that follows how much of it has been read; it is read twice, to hash and to send."""
    size = _remaining(file)
    if size < LONG or not _is_terminal():
        yield file
        return
    with typer.progressbar(length=2 * size, label="storing", file=sys.stderr) as bar:
        yield Watched(file, bar.update)


def counted(pieces: Iterable[bytes], size: int) -> Generator[bytes]:
    """`pieces`, with a bar that follows how much of `size` bytes has come; no bar where it is short or 0."""
    if size < LONG or not _is_terminal():
        yield from pieces
        return
    with typer.progressbar(length=size, label="reading", file=sys.stderr) as bar:
        for piece in pieces:
            yield piece
            bar.update(len(piece))


class Watched(io.BufferedIOBase):
    """A binary file that says how many bytes each reading took."""

    def __init__(self, file: IO[bytes], update: Callable[[int], Any]) -> None:
        self._file, self._update = file, update

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes, or all, and say how many came."""
        data = self._file.read(-1 if size is None else size)
        self._update(len(data))
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Change where to read on; return that position."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Return whether the position can be changed."""
        return self._file.seekable()

    def readable(self) -> bool:
        """Return True."""
        return True


def _remaining(file: IO[bytes]) -> int:
    """Bytes of a plain file; 0 for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _is_terminal() -> bool:
    """Whether standard error is one that can show a bar, and no reader of a pipe writes lines between."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return False
    return not output.is_pipe()
