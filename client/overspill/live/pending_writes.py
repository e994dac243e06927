"""Gathers writes from any thread, and masks their secrets before anything else sees them.

A secret may be split between two writes. So all writes are masked as one text. The last word is held back,
because it may be the beginning of a secret.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill.text import encoding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.live.ports import StreamCopy
    from overspill.redaction.redactor import Redactor

ENDED: Final = "this live capture has ended: nothing can be written to it"
_NONE: Final[Mapping[str, int]] = {}
BATCH_BYTES: Final = 1024 * 1024
"""About this many bytes are masked at once: masking takes several times their memory."""


class PendingWrites:
    """Takes writes, masks them, and gives them in batches to the sender. `copy` gets the same bytes."""

    def __init__(self, redactor: Redactor | None, copy: StreamCopy | None = None) -> None:
        self._masking = None if redactor is None else redactor.stream(bytes)
        self._copy = copy
        self._lock = threading.Lock()
        self._pieces: deque[bytes] = deque()
        self._is_closed = False
        """Whether nothing more can be added."""
        self.is_drained: bool = False
        """Whether all was taken, and the copy has got it."""
        self.size: int = 0
        """The bytes that wait to be taken."""
        self.preparing: int = 0
        """Bytes of the last batch that was taken. The taker sets it to 0 when they are counted elsewhere."""
        self.taken_bytes: int = 0
        """Bytes of all batches, as they were masked."""
        self.sha256: hashlib._Hash = hashlib.sha256()
        """The SHA-256 of all batches."""

    @property
    def masked(self) -> Mapping[str, int]:
        """The number of secrets of each kind that were masked so far."""
        return _NONE if self._masking is None else self._masking.counts

    @property
    def has_copy(self) -> bool:
        """Whether a copy of everything is kept."""
        return self._copy is not None

    def add(self, data: bytes) -> None:
        """Take a write. Raises `ValueError` after the last batch. Safe to call from any thread."""
        with self._lock:
            if self._is_closed:
                raise ValueError(ENDED)
            self._pieces.append(data)
            self.size += len(data)

    def take(self, *, is_last: bool = False) -> bytes:
        """Return the next batch, without bytes at its end that may be half a secret.

        With `is_last` nothing more will be written: once nothing is left, nothing is held back either.
        """
        pieces = self._batch(is_last=is_last)
        if self._masking is not None:
            pieces = [self._masking.feed(piece) for piece in pieces]
            if not self.size:
                pieces.append(self._masking.finish() if is_last else self._masking.settle())
        data = b"".join(pieces)
        self.sha256.update(data)
        self.taken_bytes += len(data)
        if self._copy is not None and data:
            self._copy.keep(data, is_masked=bool(self.masked))
        self.is_drained = self._is_closed
        return data

    def _batch(self, *, is_last: bool) -> list[bytes]:
        pieces: list[bytes] = []
        size = 0
        with self._lock:
            while self._pieces and size < BATCH_BYTES:
                pieces.append(self._pieces.popleft())
                size += len(pieces[-1])
            self.preparing = size  # before it is subtracted: another thread never counts too little
            self.size -= size
            self._is_closed = is_last and not self._pieces
        return pieces


def bytes_of(data: str | bytes | bytearray | memoryview) -> bytes:
    """Return what was written as bytes: text as UTF-8, lone surrogates as the bytes that they stand for.

    Raises `TypeError` for anything else: `bytes(5)` would be five zeros.
    """
    if isinstance(data, str):
        return encoding.encode(data)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"only text and bytes can be written, not {type(data).__name__}")
    return bytes(data)
