"""Makes a caller's content readable any number of times, as retries need.

The id of a capture holds the digest of its content, so all of it is read once before a byte is sent. Data in
memory and seekable files are read twice. Everything else goes through a temporary file.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, cast

from overspill.errors import ContentChanged
from overspill.execution import threads
from overspill.text import encoding
from overspill.text.long_files import long_file_folder
from overspill.transfer.argument_checks import check_digest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Source: TypeAlias = (
    str
    | bytes
    | bytearray
    | memoryview
    | os.PathLike[str]
    | BinaryIO
    | IO[bytes]
    | Iterable[bytes]
    | AsyncIterable[bytes]
)
"""A `str` is always content, never a path. A `bytearray` and a writable `memoryview` are copied first."""

PIECE: Final = 256 * 1024
_BLOCK: Final = 1024 * 1024
_IN_MEMORY: Final = 1024 * 1024
"""Content of files and iterators with fewer bytes is held in memory; longer content is not."""
_WORTH_A_THREAD: Final = 64 * 1024


class InMemory:
    """Content in memory, which is not copied."""

    def __init__(self, data: bytes | memoryview, sha256: bytes | None = None) -> None:
        self.whole: memoryview = memoryview(data).cast("B")
        self.size: int = len(self.whole)
        self.sha256: bytes = hashlib.sha256(self.whole).digest() if sha256 is None else sha256

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes in pieces of 256 KiB."""
        for start in range(0, self.size, PIECE):
            yield self.whole[start : start + PIECE]


class InFile:
    """The content of a file, from its current position to its end.

    Each read seeks first, so an abandoned attempt that still reads does not disturb another one. Raises
    `OSError`.
    """

    whole = None

    def __init__(self, file: BinaryIO | IO[bytes], sha256: bytes | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._start = file.tell()
        self.size: int
        self.sha256: bytes
        if sha256 is None:
            self.size, self.sha256 = self._hashed()
        else:
            self.size, self.sha256 = file.seek(0, os.SEEK_END) - self._start, sha256

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes in pieces. Raises `OSError`, and `ContentChanged` if their number has changed."""
        sent = 0
        while block := self._read(sent, PIECE):
            sent += len(block)
            if sent > self.size:
                break
            yield block
        if sent != self.size:
            raise ContentChanged(
                "the file changed while it was being captured; nothing was stored, try again"
            )

    def _hashed(self) -> tuple[int, bytes]:
        size, state = 0, hashlib.sha256()
        while block := self._read(size, _BLOCK):
            state.update(block)
            size += len(block)
        return size, state.digest()

    def _read(self, offset: int, length: int) -> bytes:
        with self._lock:
            self._file.seek(self._start + offset)
            return self._file.read(length)


HashedContent: TypeAlias = InMemory | InFile
"""Content of known size and digest. `whole` is all of it if it is in memory, else None.

`pieces` begins anew each time. It may block on a file, so call it in a thread.
"""


@asynccontextmanager
async def opened(source: Source, sha256: bytes | None = None) -> AsyncIterator[HashedContent]:
    """Yield `source` as content. A file that was opened for it is closed at the end of the block.

    `sha256` is its digest, if the caller knows it; then it is not computed. Raises `TypeError` if `source`
    holds no bytes, `ValueError` if the digest is invalid, and whatever reading it raises.
    """
    check_digest(sha256)
    if isinstance(source, str | bytes | bytearray | memoryview):
        yield await _of_memory(source, sha256)
    elif isinstance(source, os.PathLike):
        with cast("BinaryIO", await threads.run_alone(open, source, "rb")) as named:  # a FIFO may wait
            async with opened(named, sha256) as content:
                yield content
    elif (file := _seekable(source)) is not None:
        yield await threads.run_blocking(_of_file, file, sha256)
    else:
        with SpooledTemporaryFile(_IN_MEMORY, dir=long_file_folder()) as copy:
            await _drain(source, copy)
            yield await threads.run_blocking(_of_copy, copy, sha256)


async def _of_memory(source: str | bytes | bytearray | memoryview, sha256: bytes | None) -> HashedContent:
    if len(source) < _WORTH_A_THREAD or (sha256 is not None and isinstance(source, bytes)):
        return _snapshot(source, sha256)
    return await threads.run(_snapshot, source, sha256)


def _snapshot(source: str | bytes | bytearray | memoryview, sha256: bytes | None) -> HashedContent:
    if isinstance(source, str):
        return InMemory(encoding.encode(source), sha256)
    if isinstance(source, bytes):
        return InMemory(source, sha256)
    view = memoryview(source)
    return InMemory(view if view.readonly and view.c_contiguous else bytes(view), sha256)


def _seekable(source: object) -> BinaryIO | None:
    file = cast("BinaryIO", source)
    return file if hasattr(source, "read") and hasattr(source, "seekable") and file.seekable() else None


def _of_file(file: BinaryIO | IO[bytes], sha256: bytes | None) -> HashedContent:
    """Return a file's content. Short content is read into memory, so that it can be sent as one frame."""
    start = file.tell()
    data = file.read(_IN_MEMORY)
    if not isinstance(data, bytes):
        raise TypeError(f"a file must be opened in binary mode; reading it gave {type(data).__name__}")
    if len(data) < _IN_MEMORY:
        return InMemory(data, sha256)
    file.seek(start)
    return InFile(file, sha256)


def _of_copy(copy: IO[bytes], sha256: bytes | None) -> HashedContent:
    copy.seek(0)
    return _of_file(copy, sha256)


async def _drain(source: object, copy: IO[bytes]) -> None:
    """Copy content that can be read only once."""
    if isinstance(source, AsyncIterable):
        async for batch in _batches(source):
            await threads.run_blocking(_write, copy, batch)
    else:
        await threads.run_alone(_write, copy, _checked(_blocks(source)))


def _write(copy: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        copy.write(piece)


async def _batches(source: AsyncIterable[Any]) -> AsyncIterator[list[bytes]]:
    """Yield the pieces in lists of about 1 MiB, so that not every small piece costs a thread's work."""
    batch: list[bytes] = []
    length = 0
    async for piece in source:
        batch.append(_check(piece))
        length += len(piece)
        if length >= _BLOCK:
            yield batch
            batch, length = [], 0
    yield batch


def _blocks(source: object) -> Iterable[Any]:
    if hasattr(source, "read"):
        read = cast("Callable[[int], bytes]", source.read)
        return iter(lambda: read(_BLOCK), b"")
    if isinstance(source, Iterable):
        return source
    raise TypeError(
        f"cannot capture {type(source).__name__}: give str, bytes, a path, a binary file, "
        "or an iterable or async iterable of bytes"
    )


def _checked(pieces: Iterable[Any]) -> Iterator[bytes]:
    for piece in pieces:
        yield _check(piece)


def _check(piece: object) -> bytes:
    if isinstance(piece, bytes | bytearray | memoryview):
        return cast("bytes", piece)
    raise TypeError(f"an iterable to capture must give bytes; it gave {type(piece).__name__}")
