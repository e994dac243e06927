"""What was written and not yet prepared for sending: gathered from any thread, then masked.

A secret may be cut by the border of two writes. So masking happens here, over all writes as one text; the
last word is held back, because it may be the beginning of a secret.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from overspill.text import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.redaction.redactor import Redactor

_NONE: Final[Mapping[str, int]] = {}


class Intake:
    """Takes writes. `masked` counts the secrets that were masked, by kind."""

    def __init__(self, redactor: Redactor | None) -> None:
        self._masking = None if redactor is None else redactor.stream(bytes)
        self._lock = threading.Lock()
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def masked(self) -> Mapping[str, int]:
        """How many secrets of each kind were masked until now."""
        return _NONE if self._masking is None else self._masking.counts

    @property
    def size(self) -> int:
        """The bytes that wait to be taken."""
        return self._size

    def add(self, data: bytes) -> None:
        """Take a write. Safe to call from any thread."""
        with self._lock:
            self._pieces.append(data)
            self._size += len(data)

    def taken(self) -> bytes:
        """Return what was written, with its secrets masked. What may be half a secret stays."""
        data = self._emptied()
        if self._masking is None:
            return data
        return self._masking.feed(data) + self._masking.settle()

    def last(self) -> bytes:
        """Return the rest, after the last write."""
        data = self._emptied()
        return data if self._masking is None else self._masking.finish(data)

    def _emptied(self) -> bytes:
        with self._lock:
            pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def bytes_of(data: str | bytes | bytearray | memoryview) -> bytes:
    """Return what was written as bytes: text as UTF-8, lone surrogates as the bytes that they stand for."""
    return measure.encode(data) if isinstance(data, str) else bytes(data)
