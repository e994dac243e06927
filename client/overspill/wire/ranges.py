"""Byte ranges, as asked for and as resolved (RFC 9110, section 14)."""

from __future__ import annotations

import re
from typing import ClassVar

from msgspec import Struct


class ContentRange(Struct, frozen=True):
    """A range within content of `size` bytes: from `start` up to, not including, `stop`."""

    start: int
    stop: int
    size: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        """Return the value of the `Content-Range` field."""
        return f"bytes {self.start}-{self.stop - 1}/{self.size}"


class ByteRange(Struct, frozen=True):
    """One range as asked for: `first` and `last` are inclusive, from 0.

    `first is None` asks for the last `last` bytes (a suffix); `last is None` goes to the end. Raises
    `ValueError` if `last` is before `first`, for a number below 0, and if there is neither.
    """

    first: int | None
    last: int | None = None

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"\s*bytes\s*=\s*([0-9]*)\s*-\s*([0-9]*)\s*", re.IGNORECASE
    )
    _FAR: ClassVar[int] = 10**18
    """Beyond every size: positions with more digits mean no more than this one."""

    def __post_init__(self) -> None:
        if self.first is None and self.last is None:
            raise ValueError("a range of bytes needs a first or a last byte")
        if min(self.first or 0, self.last or 0) < 0:
            raise ValueError("a range of bytes counts from 0; ByteRange(None, 20) has the last 20 bytes")
        if self.first is not None and self.last is not None and self.last < self.first:
            raise ValueError(f"the last byte, {self.last}, is before the first, {self.first}")

    @classmethod
    def parse(cls, field: str) -> ByteRange | None:
        """Return the range of a `Range` field, or None if RFC 9110 says to ignore the field.

        A field is ignored for another unit, several ranges, anything malformed, or `last` before `first`.
        """
        match = cls._PATTERN.fullmatch(field)
        if match is None:
            return None
        first, last = (cls._position(text) for text in match.groups())
        if first is None and last is None:
            return None
        if first is not None and last is not None and last < first:
            return None
        return cls(first, last)

    @classmethod
    def _position(cls, digits: str) -> int | None:
        if not digits:
            return None
        digits = digits.lstrip("0") or "0"
        return int(digits) if len(digits) <= len(str(cls._FAR)) else cls._FAR

    def __str__(self) -> str:
        """Return the value of the `Range` field."""
        return f"bytes={'' if self.first is None else self.first}-{'' if self.last is None else self.last}"

    def resolve(self, size: int) -> ContentRange | None:
        """Return the range within `size` bytes, or None if not one of its bytes exists (416)."""
        if self.first is None:
            start, stop = max(0, size - (self.last or 0)), size
        else:
            start, stop = self.first, size if self.last is None else min(self.last + 1, size)
        return ContentRange(start, stop, size) if start < stop else None
