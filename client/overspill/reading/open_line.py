"""The line that a search is in, while it goes on in the next chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.reading.split_line import SplitLine, UnsearchedLine

if TYPE_CHECKING:
    from overspill.reading.chunks import Extent
    from overspill.reading.matching import Matcher
    from overspill.reading.scanning import Cursor
    from overspill.reading.split_line import LineResult


class OpenLine:
    """The open line, or none. Its pieces come in the order of the search; backwards, from its end."""

    def __init__(self, matcher: Matcher, extent: Extent, *, backwards: bool, ansi: bool) -> None:
        self._matcher, self._extent, self._backwards, self._ansi = matcher, extent, backwards, ansi
        self._line: SplitLine | UnsearchedLine | None = None
        self._is_unended = False
        r"""Whether the capture is known to end without `\n`."""
        self.number: int = 0
        self.is_open: bool = False
        self.is_searched: bool = False
        """Whether the line is searched, and not only shown around a match."""

    @property
    def is_enough(self) -> bool:
        """Whether enough of the line is known."""
        return self._line is not None and self._line.is_enough

    def begin(self, number: int, offset: int, *, is_searched: bool) -> None:
        """Begin a line at `offset`; backwards at its end."""
        self.number, self.is_open, self.is_searched = number, True, is_searched
        backwards, ansi = self._backwards, self._ansi
        if is_searched:
            self._line = SplitLine(
                self._matcher, offset, backwards=backwards, ansi=ansi, is_ended=self._is_ended
            )
        else:
            self._line = UnsearchedLine(backwards=backwards, ansi=ansi)

    def enter(self, cursor: Cursor, beginning: LineResult | None) -> None:
        """Go on inside the line of a cursor, whose `beginning` has been searched."""
        self.number, self.is_open, self.is_searched = cursor.line, True, True
        self._line = SplitLine(
            self._matcher,
            cursor.offset or 0,
            backwards=self._backwards,
            ansi=self._ansi,
            trails=cursor.trails,
            beginning=beginning,
        )

    def end_without_newline(self) -> None:
        r"""Note that the line is the capture's last one, and ends without `\n`."""
        self.number, self._is_unended = self._extent.lines, True

    def add(self, piece: bytes, *, utf8: bool, is_whole: bool) -> LineResult | None:
        """Take the next piece. If that was all of the line, return the line. Raises `StoppedInside`."""
        assert self._line is not None
        self._line.add(piece, utf8=utf8)
        return self.whole() if is_whole else None

    def whole(self) -> LineResult:
        """Return the line, now that it is whole. Raises `StoppedInside`."""
        assert self._line is not None
        return self._line.close(is_ended=self._is_ended)

    def show(self, piece: bytes) -> None:
        """Stop searching the line, and only show it. `piece` was added last."""
        assert isinstance(self._line, SplitLine)
        self._line, self.is_searched = self._line.shown(piece), False

    def skip(self) -> bool:
        """Leave out pieces that are not needed. Return False if some are left out already."""
        assert self._line is not None
        is_new, self._line.is_skipped = not self._line.is_skipped, True
        return is_new

    def forget(self) -> None:
        """Drop the kept part of the line, backwards, because pieces before it were left out."""
        if self._line is not None:
            self._line.forget()

    def close(self) -> None:
        """Close the open line."""
        self._line, self.is_open = None, False

    @property
    def _is_ended(self) -> bool:
        r"""Whether the open line ends with `\n`."""
        return not (self._is_unended and self.number == self._extent.lines)
