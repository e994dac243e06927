"""Keeps a stream as it comes. Its secrets are masked before any of it is written."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from overspill.text.buffer import MAX_BUFFER_BYTES, Buffer, CannotBuffer

if TYPE_CHECKING:
    from overspill.redaction.redactor import RedactingStream, Redactor
    from overspill.text.body import Body


class MaskedBuffer(Buffer):
    """A buffer that masks everything written to it. Without a redactor it changes nothing."""

    def __init__(self, redactor: Redactor | None, *, max_bytes: int = MAX_BUFFER_BYTES) -> None:
        super().__init__(max_bytes=max_bytes)
        self._redactor = redactor
        self._stream: RedactingStream[Any] | None = None
        self._is_text = False
        self.counts: Counter[str] = Counter()
        """How many secrets of each kind were masked, once the buffer is finished."""

    def write(self, piece: str | bytes) -> None:
        """Add a piece. Raises `CannotBuffer`; earlier pieces are kept."""
        if self._redactor is None:
            super().write(piece)
            return
        is_text = isinstance(piece, str)
        if self._stream is None or is_text is not self._is_text:
            self._end_stream()
            self._stream, self._is_text = self._redactor.stream(type(piece)), is_text
        if masked := self._stream.feed(piece):
            super().write(masked)

    def settle(self) -> None:
        """Write the bytes that were held back: somebody reads now. What may be half a secret stays."""
        if self._stream is not None and (settled := self._stream.settle()):
            with suppress(CannotBuffer):  # `missing` says so
                super().write(settled)

    def add_line(self, text: str) -> None:
        """Add a line at the end, even if the buffer is full."""
        self._end_stream_anyhow()
        super().add_line(text)

    def finish(self) -> Body:
        """Do the same as `Buffer.finish`, including the bytes that were held back."""
        self._end_stream_anyhow()
        return super().finish()

    def _end_stream_anyhow(self) -> None:
        with suppress(CannotBuffer):  # `missing` says so
            self._end_stream()

    def _end_stream(self) -> None:
        """Write the bytes that are held back. Raises `CannotBuffer`."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        rest = stream.finish()
        self.counts.update(stream.counts)
        if rest:
            super().write(rest)
