"""Screens a body for secrets: they are masked, or the body is refused. CPU work only."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal

from overspill.redaction.masking import Redaction
from overspill.redaction.redactor import Redactor

from overspill_service.errors import SecretsFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Treatment = Literal["mask", "tag", "refuse"]

INLINE_BYTES: Final = 2 * 1024
"""The bytes that are searched within a few milliseconds in any case: hostile text takes 1 ms a KiB."""
SLICE_BYTES: Final = 64 * 1024
"""Bytes that are searched at once: it takes some times their memory."""


class Screen:
    """Takes one content in pieces, of any size, and gives back what is stored of it."""

    def __init__(self, treatment: Treatment) -> None:
        self._redactor = redactor(treatment)
        self._is_refusing = treatment == "refuse"
        self._stream = self._redactor.stream(bytes)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of secrets of each kind that were found so far."""
        return self._stream.counts

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what is stored, as far as it is decided."""
        for start in range(0, len(piece), SLICE_BYTES):
            yield self._stream.feed(piece[start : start + SLICE_BYTES])

    def finish(self) -> bytes:
        """Return the rest of what is stored. Raises `SecretsFound` where secrets are refused."""
        rest = self._stream.finish()
        if self._is_refusing and self.counts:
            raise SecretsFound(self.counts)
        return rest

    def passes(self, content: bytes) -> bool:
        """Return whether a whole content has no secrets: then it is stored as it came."""
        other = self._redactor.stream(bytes)
        for start in range(0, len(content), SLICE_BYTES):
            other.feed(content[start : start + SLICE_BYTES])
            if other.counts:
                return False
        other.finish()
        return not other.counts


def decided_size(treatment: Treatment, before: bytes, data: bytes, *, is_last: bool) -> int:
    """Return how many bytes of `data` are decided on: what follows may show that the last word is a secret.

    `before` is what precedes them, as far as a secret may reach back. With `is_last` nothing follows. Raises
    `SecretsFound`, whether secrets are to be masked or refused.
    """
    stream = redactor(treatment).stream(bytes)
    size = len(stream.feed(before))
    for start in range(0, len(data), SLICE_BYTES):
        size += len(stream.feed(data[start : start + SLICE_BYTES]))
    size += len(stream.finish() if is_last else stream.settle())
    if stream.counts:
        raise SecretsFound(stream.counts, subject="the append has")
    return max(0, size - len(before))


@functools.cache
def redactor(treatment: Treatment) -> Redactor:
    """Return what masks secrets as a tenant wants it."""
    return Redactor(Redaction.TAG if treatment == "tag" else Redaction.MASK)
