"""A line that reaches over chunks, searched once it is whole, or in parts where it is too long to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill_service.matching import OutOfTime

if TYPE_CHECKING:
    from overspill_service.matching import Matcher

HOLD: Final = 8 * 2**20
"""A line of up to so many bytes is searched as a whole, as far as `matching` can."""
OVERLAP: Final = 1024 * 1024
"""Bytes that are searched again with what follows them, in a longer line."""
SAMPLE: Final = 8 * 1024
"""Bytes kept around a match, or of the first part, of a longer line."""
_CONTEXT: Final = 4
"""Bytes left unsearched at a cut, so that anchors see what lies beyond it."""


class Line(NamedTuple):
    """A line, or what is kept of one; `at` is where the match in it begins, None where nothing matches."""

    data: bytes
    at: int | None


class OpenLine:
    """Takes a line's pieces in order, or from its end where backwards."""

    def __init__(self, matcher: Matcher, offset: int, *, backwards: bool, is_part: bool = False) -> None:
        """`offset` is where the line begins in the capture; backwards, where it ends.

        `is_part` says that what lies beyond `offset` belongs to the line too and has been searched.
        """
        self._matcher, self._offset, self._backwards = matcher, offset, backwards
        self._is_cut = is_part
        self._pieces: list[bytes] = []
        self._held = 0
        self._utf8 = True
        self._sample: Line | None = None

    def add(self, piece: bytes, *, utf8: bool) -> None:
        """Take the next piece. Raises `OutOfTime` with the offset in the capture to go on at."""
        self._pieces.append(piece)
        self._held += len(piece)
        self._utf8 = self._utf8 and utf8
        if self._held > HOLD:
            self._shrink()

    @property
    def found(self) -> Line | None:
        """What is kept around a match that was found before the line's end, if one was."""
        return self._sample if self._sample and self._sample.at is not None else None

    def close(self) -> Line:
        """The line, which has ended. Raises `OutOfTime` as `add` does."""
        data = self._joined()
        at = self._find(data, is_last=True)
        if self._sample is None:
            return Line(data, at)
        return self._around(data, at)

    def _shrink(self) -> None:
        data = self._joined()
        self._sample = self._around(data, self._find(data, is_last=False))
        kept = data[:OVERLAP] if self._backwards else data[-OVERLAP:]
        passed = len(data) - len(kept)
        self._offset += -passed if self._backwards else passed
        self._pieces, self._held, self._is_cut = [kept], len(kept), True
        if self._matcher.expired():
            raise OutOfTime(self._offset)

    def _joined(self) -> bytes:
        return b"".join(reversed(self._pieces) if self._backwards else self._pieces)

    def _find(self, data: bytes, *, is_last: bool) -> int | None:
        """Where a match begins in `data`, the part of the line that is held."""
        begins, ends = (is_last, not self._is_cut) if self._backwards else (not self._is_cut, is_last)
        start, stop = (0 if begins else _CONTEXT), (len(data) if ends else len(data) - _CONTEXT)
        if ends and data.endswith(b"\r"):
            data, stop = data[:-1], stop - 1
        if start > stop or self.found:
            return None
        try:
            return self._matcher.find(data, start, stop, utf8=self._utf8)
        except OutOfTime as error:
            moved = error.position - (len(data) if self._backwards else 0)
            raise OutOfTime(self._offset + moved) from None

    def _around(self, data: bytes, at: int | None) -> Line:
        """What to keep of a long line: what lies around its match, else its beginning."""
        if self.found:
            return self.found
        if at is not None:
            start = max(0, at - SAMPLE // 2)
            return Line(data[start : start + SAMPLE], at - start)
        if self._sample is None or self._backwards:
            return Line(data[:SAMPLE], None)
        return self._sample
