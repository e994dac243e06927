"""A progress bar for long transfers, on a terminal that nothing else writes to."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import click

from overspill.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

LONG_BYTES: Final = 8 * 1024 * 1024
"""The least size of a transfer that gets a bar."""


@contextmanager
def file_with_progress(file: IO[bytes]) -> Iterator[IO[bytes] | ProgressFile]:
    """Give `file` with a bar that shows how much of it was read. It is read twice, to hash and to send."""
    size = _remaining(file)
    if size < LONG_BYTES or not _is_terminal():
        yield file
        return
    with click.progressbar(length=2 * size, label="storing", file=sys.stderr) as bar:
        yield ProgressFile(file, bar.update)


def pieces_with_progress(pieces: Iterable[bytes], size: int) -> Generator[bytes]:
    """Yield `pieces` with a bar that shows how much of `size` bytes came. No bar if that is little, or 0."""
    if size < LONG_BYTES or not _is_terminal():
        yield from pieces
        return
    with click.progressbar(length=size, label="reading", file=sys.stderr) as bar:
        for piece in pieces:
            yield piece
            bar.update(len(piece))


class ProgressFile(io.BufferedIOBase):
    """A binary file that reports how many bytes each read returned."""

    def __init__(self, file: IO[bytes], update: Callable[[int], Any]) -> None:
        self._file, self._update = file, update

    def beside(self, file: IO[bytes]) -> ProgressFile:
        """Return another file that reports to the same place."""
        return ProgressFile(file, self._update)

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes, or all, and report how many came."""
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
    """Return the size of a plain file, or 0 for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _is_terminal() -> bool:
    """Return whether standard error can show a bar, and no reader of a pipe can write lines between."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return False
    return not output.is_pipe()
