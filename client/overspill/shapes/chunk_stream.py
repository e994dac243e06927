"""Outputs that come in chunks: held back while they may stay, captured as they flow once they are too long.

A stream of chunks of text or bytes that ends within the limits comes out as it went in, the same chunks. Of a
longer one nothing comes out but one chunk at its end, the notice; its bytes go to memory, then to a file.
Of a stream of records, as dicts, the first pass as they come; see `records`. Objects that show nothing of
themselves flow on untouched.

A source that fails does so behind what came before: the held chunks, or the notice, whose capture says so.
One that has no end is ended, and closed, at `most` bytes, or after `seconds` where they are given. Whoever
stops asking for chunks closes the source, and nothing is kept.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.content import TextShape
from overspill.shapes.fields import is_a
from overspill.shapes.records import MOST_HELD, NDJSON, Records, Reserve, record_size, stand_in_record
from overspill.text import measure
from overspill.text.buffer import MAX_BUFFER_BYTES, Buffer, BufferFull
from overspill.text.limits import exceeds
from overspill.text.rendering import BINARY_TYPE, TEXT_TYPE, printable, sniff_media_type

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
    from pathlib import Path

    from overspill.previews.notice import Notice
    from overspill.text.body import Body
    from overspill.text.limits import Limits

    Chunk = str | bytes
    Run = Callable[..., Awaitable[Any]]

_OF_ITERATORS: Final = frozenset({"send", "throw", "close", "asend", "athrow", "aclose", "from_iterable"})
_BATCH: Final = 256 * 1024
_WORTH_A_THREAD: Final = 64 * 1024
_LIGHT_RECORD: Final = 8 * 1024
_LONGEST_MAGIC: Final = 16
_NOTHING: Final = Reserve()


def is_chunk_iterator(value: Any) -> bool:
    """Whether `value` may be a stream of chunks: an iterator and nothing else: no file, no cursor."""
    return _is_iterator(type(value), "__next__")


def is_async_chunk_iterator(value: Any) -> bool:
    return _is_iterator(type(value), "__anext__")


def _is_iterator(kind: type, method: str) -> bool:
    try:
        return hasattr(kind, method) and _only_iterates(kind)
    except Exception:  # noqa: BLE001  (a foreign metaclass: whatever it raises)
        return False


def _only_iterates(kind: type) -> bool:
    """Whether the public names of this type are those of the iterators that Python makes, or fewer."""
    names = {name for name in dir(kind) if not name.startswith(("_", "gi_", "ag_"))}
    return names <= _OF_ITERATORS


class HeldChunks:
    """Chunks that are held back, and whether together they are within `limits`. Without I/O."""

    def __init__(self, limits: Limits) -> None:
        self.chunks: list[Chunk] = []
        self._limits = limits
        self._size = self._chars = self._newlines = 0
        self._ends_line = True

    def take(self, chunk: Chunk) -> bool:
        """Whether all so far may still be within the limits; tokens are counted at the end only."""
        self.chunks.append(chunk)
        if chunk:
            newline: Any = "\n" if isinstance(chunk, str) else b"\n"
            self._size += measure.size(chunk) if isinstance(chunk, str) else len(chunk)
            self._chars += len(chunk)
            self._newlines += chunk.count(newline)
            self._ends_line = chunk[-1:] == newline
        return self._may_fit()

    def fits(self) -> bool:
        """Whether what is there is within all the limits."""
        if not self._may_fit():
            return False
        if self._limits.max_tokens is None:
            return True
        texts = [chunk if isinstance(chunk, str) else chunk.decode(errors="replace") for chunk in self.chunks]
        return not exceeds("".join(texts), self._limits)

    def _may_fit(self) -> bool:
        most, limits = min(self._limits.max_bytes, MOST_HELD), self._limits
        return (
            self._size <= most
            and self._newlines + (not self._ends_line) <= limits.max_lines
            and (limits.max_chars is None or self._chars <= limits.max_chars)
        )


class StreamShape:
    """A stream that was too long. `missing` says why not all that came of it is in `body`, if it is not."""

    left: Limits | None = None
    """What of the limits is left for the notice, where that is less than they allow."""
    passed: int = 0
    """Bytes that had passed before it was too long."""

    def __init__(self, body: Body, content_type: str, *, is_bytes: bool, missing: str = "") -> None:
        self.body = body
        self.content_type = content_type
        self.missing = missing
        self._is_bytes = is_bytes

    def exceeds(self, limits: Limits) -> bool:
        return exceeds(self.body, limits)

    def is_guarded(self) -> bool:
        return isinstance(self.body, str) and TextShape(self.body).is_guarded()

    def whole(self) -> Any:
        """All that came of a short one, as one chunk like those that came."""
        body = self.body if isinstance(self.body, (str, bytes)) else self.body.read(0, self.body.size)
        return measure.encode(body) if self._is_bytes and isinstance(body, str) else body

    def replaced(self, notice: Notice) -> Any:
        """The notice as a chunk like those that came."""
        return measure.encode(str(notice)) if self._is_bytes else str(notice)

    def read(self, notice: Notice) -> str:
        return str(notice)

    def items(self, value: Any) -> list[Any]:
        """What comes at the end of the stream where `value` stands for it."""
        return [value]


class RecordStreamShape(StreamShape):
    """A stream of records that was too long: those that had not passed wait while they are few."""

    def __init__(self, body: Body, records: Records, missing: str) -> None:
        super().__init__(body, NDJSON, is_bytes=False, missing=missing)
        self.left: Limits | None = records.left()
        self.passed: int = records.passed
        self._first = records.first
        self._waiting = records.waiting

    def whole(self) -> Any:
        """All that did not pass yet, of a short one."""
        return self._waiting

    def replaced(self, notice: Notice) -> Any:
        """The notice in a record like those that came."""
        return stand_in_record(self._first, notice)

    def items(self, value: Any) -> list[Any]:
        return self._waiting or [] if value is self._waiting else [value]


class ChunkStream:
    """What becomes of each chunk of one stream. Writes to a file at times.

    Chunks come from one thread at a time, but `close` may come from another while one is being taken.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        most: int = MAX_BUFFER_BYTES,
        folder: Path | None = None,
        reserve: Reserve = _NOTHING,
    ) -> None:
        self.is_over: bool = False
        self._limits = limits
        self._reserve = reserve
        self._records: Records | None = None
        self._lock = Lock()
        self._held: HeldChunks | None = HeldChunks(limits)
        self._gathering: Buffer | None = None
        self._most = most
        self._folder = folder
        self._kind = _ChunkType()

    @property
    def is_gathering(self) -> bool:
        """Whether it is too long already."""
        if self._records is not None:
            return self._records.waiting is None
        return self._gathering is not None

    @property
    def is_of_records(self) -> bool:
        return self._records is not None

    @property
    def size(self) -> int:
        """Bytes of the records that came."""
        return 0 if self._records is None else self._records.size

    def take(self, chunk: Any) -> list[Any]:
        """The chunks that flow on now. Sets `is_over` where no more can be taken."""
        with self._lock:
            return [] if self.is_over else self._taken(chunk)

    def _taken(self, chunk: Any) -> list[Any]:
        if is_a(chunk, (bytearray, memoryview)) and self._records is None:
            chunk = bytes(chunk)
        if self._records is not None:
            return self._passing(self._records, [chunk])
        if not is_a(chunk, (str, bytes)):
            return self._other(chunk)
        self._kind.look(chunk)
        if self._gathering is not None:
            self._keep([chunk])
        elif self._held is not None and not self._held.take(chunk):
            self._gather(self._held)
        return []

    def end(self, why: str = "") -> list[Any]:
        """The held chunks, at the end of the stream or where it ends before, and then `why`."""
        with self._lock:
            if self._records is not None:
                return self._end_of_records(self._records, why)
            held, self._held = self._held, None
            if held is not None and not held.fits():
                self._gather(held)
                held = None
            if self._gathering is not None and why:
                self._gathering.remark(why)
            return [] if held is None else held.chunks

    def content(self) -> StreamShape | None:
        """After the end: what was gathered; None where all flowed on."""
        if self._gathering is None or (self._records is not None and self._records.fits()):
            return None
        with self._lock:
            try:
                body = self._gathering.finish()
            except OSError as error:
                self._gathering.missing = f"it cannot be read back: {error.strerror or error}"
                body = f"(what came of the stream cannot be read back: {error.strerror or error})\n"
        kind, missing = self._kind, self._gathering.missing
        if self._records is not None:
            return RecordStreamShape(body, self._records, missing)
        return StreamShape(body, kind.media_type(), is_bytes=kind.is_bytes, missing=missing)

    def close(self) -> None:
        with self._lock:
            self.is_over = True
            if self._gathering is not None:
                self._gathering.close()

    def _other(self, chunk: Any) -> list[Any]:
        """A chunk that is a record: with those that were held it begins a stream of such."""
        if self._gathering is not None:
            self._keep([printable(chunk)])
            return []
        held, self._held = self._held, None
        self._gathering = Buffer(most=self._most, folder=self._folder)
        self._records = Records(self._limits, self._gathering, self._reserve)
        return self._passing(self._records, [*([] if held is None else held.chunks), chunk])

    def _passing(self, records: Records, chunks: list[Any]) -> list[Any]:
        passing: list[Any] = []
        try:
            for chunk in chunks:
                passing += records.take(chunk)
        except BufferFull as error:
            self.is_over = True
            records.remark(f"no more of the stream is kept: {error}", is_end=True)
        return passing

    def _end_of_records(self, records: Records, why: str) -> list[Any]:
        if records.fits():
            return records.waiting or []
        if why:
            records.remark(why)
        return []

    def _gather(self, held: HeldChunks) -> None:
        self._held = None
        self._gathering = Buffer(most=self._most, folder=self._folder)
        self._keep(held.chunks)

    def _keep(self, chunks: list[Chunk]) -> None:
        assert self._gathering is not None
        try:
            for chunk in chunks:
                self._gathering.write(chunk)
        except BufferFull as error:
            self.is_over = True
            self._gathering.remark(f"no more of the stream is kept: {error}")


class _ChunkType:
    """What kind of bytes flow by."""

    def __init__(self) -> None:
        self.is_bytes = False
        self._head = b""
        self._is_utf8 = True
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def look(self, chunk: Chunk) -> None:
        if isinstance(chunk, str):
            return
        self.is_bytes = True
        if len(self._head) < _LONGEST_MAGIC:
            self._head += chunk[:_LONGEST_MAGIC]
        if self._is_utf8:
            try:
                self._decoder.decode(chunk)
            except UnicodeDecodeError:
                self._is_utf8 = False

    def media_type(self) -> str:
        if not self.is_bytes:
            return TEXT_TYPE
        return sniff_media_type(self._head) or (TEXT_TYPE if self._is_utf8 else BINARY_TYPE)


def guarded_chunks(
    source: Iterator[Any],
    flow: ChunkStream,
    settle: Callable[[StreamShape], Any],
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Any, None, Any]:
    """`source` through `flow`; what `settle` makes of a stream that was too long comes at its end."""
    begun, why, failure, returned = clock(), "", None, None
    try:
        while not flow.is_over:
            if seconds is not None and clock() - begun > seconds:
                why = _too_late(seconds)
                break
            try:
                chunk = next(source)
            except StopIteration as stop:
                returned = stop.value
                break
            except Exception as error:  # noqa: BLE001  (it is raised again behind what came before)
                failure, why = error, _failed(error)
                break
            yield from flow.take(chunk)
        yield from flow.end(why)
        content = flow.content()
        if content is not None:
            yield from content.items(settle(content))
        if failure is not None:
            raise failure
        return returned
    finally:
        close_source(source)
        flow.close()


async def guarded_chunks_async(
    source: AsyncIterator[Any],
    flow: ChunkStream,
    settle: Callable[[StreamShape], Awaitable[Any]],
    run: Run,
    *,
    seconds: float | None = None,
) -> AsyncGenerator[Any, None]:
    """As `guarded_chunks`; what may block is done by `run(work, *args)`, in batches."""
    incoming = _Incoming(source, seconds)
    batch = _Batch(flow, run)
    try:
        async for chunk in incoming:
            for passed in await batch.take(chunk):
                yield passed
            if flow.is_over:
                break
        for held in [*(await batch.flush()), *(await run(flow.end, incoming.why))]:
            yield held
        content = await run(flow.content)
        if content is not None:
            for item in content.items(await settle(content)):
                yield item
        if incoming.failure is not None:
            raise incoming.failure
    finally:
        flow.close()
        await aclose_source(source)


class _Incoming:
    """The chunks of a source until it ends, fails or has had its time; then `why`."""

    def __init__(self, source: AsyncIterator[Any], seconds: float | None) -> None:
        self.failure: Exception | None = None
        self.why = ""
        self._source = source
        self._seconds = seconds
        self._until = None if seconds is None else asyncio.get_running_loop().time() + seconds

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> Any:
        limit = None if self._until is None else asyncio.timeout_at(self._until)
        try:
            if limit is None:
                return await anext(self._source)
            async with limit:
                return await anext(self._source)
        except StopAsyncIteration:
            raise
        except Exception as error:  # noqa: BLE001  (it is raised again behind what came before)
            self._note(error, is_late=limit is not None and limit.expired())
        raise StopAsyncIteration

    def _note(self, error: Exception, *, is_late: bool) -> None:
        if is_late:
            self.why = _too_late(self._seconds or 0.0)
        else:
            self.failure, self.why = error, _failed(error)


class _Batch:
    """Chunks on their way to the file, so many at a time that a thread is worth it."""

    def __init__(self, flow: ChunkStream, run: Run) -> None:
        self._flow = flow
        self._run = run
        self._chunks: list[Any] = []
        self._size = 0

    async def take(self, chunk: Any) -> list[Any]:
        size = record_size(chunk)
        if not self._flow.is_gathering:
            is_light = size <= (_WORTH_A_THREAD if is_a(chunk, (str, bytes)) else _LIGHT_RECORD)
            return self._flow.take(chunk) if is_light else list(await self._run(self._flow.take, chunk))
        self._chunks.append(chunk)
        self._size += size
        if self._size >= _BATCH or len(self._chunks) >= _BATCH // 64:
            return await self.flush()
        return []

    async def flush(self) -> list[Any]:
        chunks, self._chunks, self._size = self._chunks, [], 0
        return list(await self._run(self._take_all, chunks)) if chunks else []

    def _take_all(self, chunks: list[Any]) -> list[Any]:
        return [passing for chunk in chunks for passing in self._flow.take(chunk)]


def _failed(error: Exception) -> str:
    return f"the stream failed here: {printable(error)[:1000]}"


def _too_late(seconds: float) -> str:
    return f"the stream was ended here: it took longer than {seconds:g} s"


def close_source(source: Any) -> None:
    close = getattr(source, "close", None)
    if callable(close):
        close()


async def aclose_source(source: Any) -> None:
    close = getattr(source, "aclose", None)
    if callable(close):
        await close()
