"""Chunks of one stream. They are held back while the whole may stay, and captured when it is too long.

A stream of text or bytes that ends within the limits comes out unchanged, in the same chunks. From a longer
one, a single chunk comes out at its end, the notice. Its bytes go to memory, then to a file. From a stream of
records, such as dicts, the first ones pass as they come: see `records`. Objects without any text pass
unchanged.

`guarded_chunks` drives a `ChunkStream` from an iterator.
"""

from __future__ import annotations

import codecs
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.fields import is_a
from overspill.shapes.held_chunks import HeldChunks
from overspill.shapes.masked_buffer import MaskedBuffer
from overspill.shapes.masked_copy import masked_copy
from overspill.shapes.records import NDJSON_TYPE, Records, Reserve
from overspill.shapes.stream_shapes import RecordStreamShape, StreamShape
from overspill.text import encoding
from overspill.text.body import FileBody
from overspill.text.buffer import MAX_BUFFER_BYTES, Buffer, CannotBuffer
from overspill.text.media_types import BINARY_TYPE, TEXT_TYPE, sniff_media_type
from overspill.text.rendering import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from overspill.redaction.redactor import Redactor
    from overspill.text.body import Body
    from overspill.text.limits import Limits

    Chunk = str | bytes

_LONGEST_MAGIC: Final = 16
"""Bytes in which the signature of a file format stands."""
_NO_RESERVE: Final = Reserve()


class ChunkStream:
    """Decides for each chunk of one stream whether it passes or is held or captured. May write to a file.

    One thread at a time may call `take` and `end`, but `close` may come from another thread meanwhile.
    A stream is ended after `max_bytes`. With a `redactor`, secrets are masked in what is captured; with
    `masks_inline` also in what passes.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        max_bytes: int = MAX_BUFFER_BYTES,
        reserve: Reserve = _NO_RESERVE,
        redactor: Redactor | None = None,
        masks_inline: bool = False,
        on_long: Callable[[], None] | None = None,
    ) -> None:
        """`on_long` is called once, as soon as the stream is too long."""
        self.is_over: bool = False
        """Whether no more chunks are taken."""
        self.taken: int = 0
        """How many chunks have come."""
        self._on_long = on_long
        self._body: Body | None = None
        self._limits = limits
        self._reserve = reserve
        self._records: Records | None = None
        self._lock = Lock()
        self._held: HeldChunks | None = HeldChunks(limits)
        self._buffer: MaskedBuffer | None = None
        self._redactor = redactor
        self._inline_redactor = redactor if masks_inline else None
        self._max_bytes = max_bytes
        self._type = _ChunkType()

    @property
    def is_capturing(self) -> bool:
        """Whether the stream is already too long."""
        if self._records is not None:
            return self._records.waiting is None
        return self._buffer is not None

    @property
    def is_of_records(self) -> bool:
        """Whether any chunk was neither text nor bytes."""
        return self._records is not None

    @property
    def size(self) -> int:
        """Bytes of the records that came; 0 for other chunks."""
        return 0 if self._records is None else self._records.size

    def take(self, chunk: Any) -> list[Any]:
        """Take the next chunk and return those that pass now. Sets `is_over` once no more can be taken."""
        with self._lock:
            passing = [] if self.is_over else self._passable(self._take_chunk(chunk))
        self.taken += 1
        on_long = self._on_long
        if on_long is not None and self.is_capturing:
            self._on_long = None
            on_long()
        return passing

    def _passable(self, chunks: list[Any]) -> list[Any]:
        """Return the chunks that may pass, with secrets masked.

        Texts that follow each other become one chunk.
        """
        redactor = self._inline_redactor
        if redactor is None:
            return chunks
        passing: list[Any] = []
        for kind, same in groupby(chunks, type):
            each = list(same)
            passing += [kind().join(each)] if kind in {str, bytes} else each
        return [masked_copy(each, redactor).value for each in passing]

    def _take_chunk(self, chunk: Any) -> list[Any]:
        if is_a(chunk, (bytearray, memoryview)) and self._records is None:
            chunk = bytes(chunk)
        if self._records is not None:
            return self._take_records(self._records, [chunk])
        if not is_a(chunk, (str, bytes)):
            return self._take_other(chunk)
        self._type.look_at(chunk)
        if self._buffer is not None:
            self._write(self._buffer, [chunk])
        elif self._held is not None and not self._held.take(chunk):
            self._capture(self._held)
        return []

    def end(self, reason: str = "") -> list[Any]:
        """Return the held chunks at the end of the stream. `reason` says why it ended early, if it did."""
        with self._lock:
            if self._records is not None:
                return self._passable(self._end_of_records(self._records, reason))
            held, self._held = self._held, None
            if held is not None and not held.fits():
                self._capture(held)
                held = None
            if self._buffer is not None and reason:
                self._buffer.add_remark(reason)
            return [] if held is None else self._passable(held.chunks)

    def shape(self) -> StreamShape | None:
        """After the end, the captured content; None if all chunks have passed."""
        if self._buffer is None or (self._records is not None and self._records.fits()):
            return None
        with self._lock:
            try:
                body = self._buffer.finish()
            except OSError as error:
                self._buffer.missing = f"it cannot be read back: {error.strerror or error}"
                body = f"(what came of the stream cannot be read back: {error.strerror or error})\n"
            self._body = body
        type_, missing, masked = self._type, self._buffer.missing, self._buffer.counts
        if self._records is not None:
            return RecordStreamShape(body, self._records, missing, masked)
        return StreamShape(body, self.media_type, is_bytes=type_.is_bytes, missing=missing, masked=masked)

    @property
    def captured(self) -> int:
        """Bytes that are kept."""
        return 0 if self._buffer is None else self._buffer.size

    @property
    def media_type(self) -> str:
        """The media type of the chunks so far."""
        return self._type.media_type() if self._records is None else NDJSON_TYPE

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` captured bytes from `offset` on; nothing if all are read.

        For another thread than that which takes chunks, during the stream and after it. Raises `OSError`.
        """
        with self._lock:
            if self._body is not None:
                return encoding.part(self._body, offset, limit)
            if self._buffer is None or self.is_over:
                return b""
            found = self._buffer.read(offset, limit)
            if not found:
                self._buffer.settle()
                found = self._buffer.read(offset, limit)
            return found

    def close(self) -> None:
        """Take no more chunks, and remove a file that was not finished."""
        with self._lock:
            self.is_over = True
            if self._buffer is not None:
                self._buffer.close()

    def _take_other(self, chunk: Any) -> list[Any]:
        """Take a chunk that is a record: with the held chunks it begins a stream of records."""
        if self._buffer is not None:
            self._write(self._buffer, [printable(chunk)])
            return []
        held, self._held = self._held, None
        self._buffer = MaskedBuffer(self._redactor, max_bytes=self._max_bytes)
        self._records = Records(self._limits, self._buffer, self._reserve)
        return self._take_records(self._records, [*([] if held is None else held.chunks), chunk])

    def _take_records(self, records: Records, chunks: list[Any]) -> list[Any]:
        passing: list[Any] = []
        try:
            for chunk in chunks:
                passing += records.take(chunk)
        except CannotBuffer as error:
            self.is_over = True
            records.add_remark(f"no more of the stream is kept: {error}", is_end=True)
        return passing

    def _end_of_records(self, records: Records, reason: str) -> list[Any]:
        if records.fits():
            return records.waiting or []
        if reason:
            records.add_remark(reason)
        return []

    def _capture(self, held: HeldChunks) -> None:
        self._held = None
        self._buffer = MaskedBuffer(self._redactor, max_bytes=self._max_bytes)
        self._write(self._buffer, held.chunks)

    def _write(self, buffer: Buffer, chunks: list[Chunk]) -> None:
        try:
            for chunk in chunks:
                buffer.write(chunk)
        except CannotBuffer as error:
            self.is_over = True
            buffer.add_remark(f"no more of the stream is kept: {error}")


def stream_shape(body: Body, masked: Mapping[str, int]) -> StreamShape:
    """Return the shape of a stream of bytes that was kept whole, masked as it came. Raises `OSError`."""
    type_ = _ChunkType()
    for piece in body.pieces() if isinstance(body, FileBody) else [body]:
        type_.look_at(piece)
    return StreamShape(body, type_.media_type(), is_bytes=True, masked=masked)


class _ChunkType:
    """Determines the media type of the chunks of a stream."""

    def __init__(self) -> None:
        self.is_bytes = False
        self._head, self._is_utf8 = b"", True
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def look_at(self, chunk: Chunk) -> None:
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
