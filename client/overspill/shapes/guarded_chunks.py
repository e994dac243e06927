"""Drive a stream of chunks through a `ChunkStream`, from an iterator or an asynchronous one.

If a source fails, its error is raised after the chunks before it: after the held chunks, or after the notice,
whose capture then says so. A source without end is ended and closed at the most bytes of a stream. A reader
that stops asking for chunks closes the source, and nothing is kept.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.fields import is_a
from overspill.shapes.records import record_size
from overspill.text.rendering import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator

    from overspill.shapes.chunk_stream import ChunkStream
    from overspill.shapes.stream_shapes import StreamShape

    Run = Callable[..., Awaitable[Any]]

_ITERATOR_NAMES: Final = frozenset({"send", "throw", "close", "asend", "athrow", "aclose", "from_iterable"})
_BATCH_BYTES: Final = 256 * 1024
_BATCH_CHUNKS: Final = 4096
_BATCH_SECONDS: Final = 0.25
"""The longest time that a chunk waits for others to be guarded together with it: somebody may be reading."""
_INLINE_CHUNK_BYTES: Final = 64 * 1024
_INLINE_RECORD_BYTES: Final = 8 * 1024
"""Larger chunks and records are looked at in a thread."""


def is_chunk_iterator(value: Any) -> bool:
    """Return whether `value` may be a stream of chunks: an iterator and nothing else, no file or cursor."""
    return _is_iterator(value, "__next__")


def is_async_chunk_iterator(value: Any) -> bool:
    """Do the same as `is_chunk_iterator`, for asynchronous iterators."""
    return _is_iterator(value, "__anext__")


def _is_iterator(value: Any, method: str) -> bool:
    """Return whether `value` has `method` and no other public names than Python's own iterators have.

    A proxy has the methods of all that it could stand for; its `__class__` is the class of what it does.
    """
    kind = type(value)
    try:
        if not (hasattr(kind, method) and hasattr(value.__class__, method)):
            return False
        return {name for name in dir(kind) if not name.startswith(("_", "gi_", "ag_"))} <= _ITERATOR_NAMES
    except Exception:  # noqa: BLE001  (a foreign metaclass: whatever it raises)
        return False


def guarded_chunks(
    source: Iterator[Any],
    stream: ChunkStream,
    settle: Callable[[StreamShape], Any],
) -> Generator[Any, None, Any]:
    """Yield the chunks of `source` that pass `stream`, and at the end what `settle` makes of a long one."""
    reason, failure, returned = "", None, None
    try:
        while not stream.is_over:
            try:
                chunk = next(source)
            except StopIteration as stop:
                returned = stop.value
                break
            except Exception as error:  # noqa: BLE001  (it is raised again behind what came before)
                failure, reason = error, _failed(error)
                break
            yield from stream.take(chunk)
        yield from stream.end(reason)
        shape = stream.shape()
        if shape is not None:
            yield from shape.items(settle(shape))
        if failure is not None:
            raise failure
        return returned
    finally:
        close_source(source)
        stream.close()


async def guarded_chunks_async(
    source: AsyncIterator[Any],
    stream: ChunkStream,
    settle: Callable[[StreamShape], Awaitable[Any]],
    run: Run,
) -> AsyncGenerator[Any, None]:
    """Do the same as `guarded_chunks`. What may block is done by `run(work, *args)`, in batches."""
    reason, failure = "", None
    batch = _ChunkBatch(stream, run)
    try:
        while not stream.is_over:
            try:
                chunk = await anext(source)
            except StopAsyncIteration:
                break
            except Exception as error:  # noqa: BLE001  (as above)
                failure, reason = error, _failed(error)
                break
            for passed in await batch.take(chunk):
                yield passed
        for held in [*(await batch.flush()), *(await run(stream.end, reason))]:
            yield held
        shape = await run(stream.shape)
        if shape is not None:
            for item in shape.items(await settle(shape)):
                yield item
        if failure is not None:
            raise failure
    finally:
        stream.close()
        await aclose_source(source)


class _ChunkBatch:
    """Chunks on their way to the file, collected until they are worth a thread."""

    def __init__(self, stream: ChunkStream, run: Run) -> None:
        self._stream = stream
        self._run = run
        self._chunks: list[Any] = []
        self._size = 0
        self._flushed_at = time.monotonic()

    async def take(self, chunk: Any) -> list[Any]:
        size = record_size(chunk)
        if not self._stream.is_capturing:
            inline = _INLINE_CHUNK_BYTES if is_a(chunk, (str, bytes)) else _INLINE_RECORD_BYTES
            if size <= inline:
                return self._stream.take(chunk)
            return list(await self._run(self._stream.take, chunk))
        self._chunks.append(chunk)
        self._size += size
        is_full = self._size >= _BATCH_BYTES or len(self._chunks) >= _BATCH_CHUNKS
        if is_full or time.monotonic() - self._flushed_at >= _BATCH_SECONDS:
            return await self.flush()
        return []

    async def flush(self) -> list[Any]:
        chunks, self._chunks, self._size = self._chunks, [], 0
        self._flushed_at = time.monotonic()
        return list(await self._run(self._take_all, chunks)) if chunks else []

    def _take_all(self, chunks: list[Any]) -> list[Any]:
        return [passing for chunk in chunks for passing in self._stream.take(chunk)]


def _failed(error: Exception) -> str:
    return f"the stream failed here: {printable(error)[:1000]}"


def close_source(source: Any) -> None:
    """Close an iterator that can be closed, as a generator."""
    close = getattr(source, "close", None)
    if callable(close):
        close()


async def aclose_source(source: Any) -> None:
    """Close an asynchronous iterator that can be closed."""
    close = getattr(source, "aclose", None)
    if callable(close):
        await close()
