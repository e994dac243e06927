"""Prints found lines: as they are, without numbers, in colour, or only the parts that match.

12:a line that matches      13-a line around it      --
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from overspill.cli import output
from overspill.cli.color import Style
from overspill.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.cli.color import Paint
    from overspill.cli.search.query import Query
    from overspill.cli.search.spans import SpanFinder

_LINE: Final = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)
_GROUP_MARK: Final = "--"
_ELLIPSIS: Final = "…"
_MIN_CUT_BYTES: Final = 1024
"""The least size of a line that the service has cut."""


class _NumberedLine(NamedTuple):
    number: int
    mark: str
    text: str

    @classmethod
    def parsed(cls, line: str) -> Self | None:
        """Parse a line of an answer. None for the mark between two groups of lines."""
        parts = _LINE.fullmatch(line)
        return None if parts is None else cls(int(parts[1]), parts[2], parts[3])

    @property
    def is_match(self) -> bool:
        return self.mark == ":"


class MatchPrinter:
    """Prints the pages of one search, as its options say. `line_of` returns a whole line by its number.

    Without a matcher it does not show where lines match.
    """

    def __init__(
        self,
        query: Query,
        paint: Paint,
        line_of: Callable[[int], str],
        matcher: SpanFinder | None,
        *,
        is_raw: bool,
    ) -> None:
        self._query, self._paint, self._line_of, self._matcher = query, paint, line_of, matcher
        self._is_raw = is_raw
        self._last_number = 0
        self._waiting_lines: list[_NumberedLine] = []

    def page(self, content: str, total: int, *, is_last: bool) -> None:
        """Print a page as the service gives it: each line behind its number and a mark.

        `total` is how many lines the capture has.
        """
        if not content:
            return
        query = self._query
        if query.numbers and not (query.only or query.is_around or self._paint.is_on):
            output.text(content, raw=self._is_raw)
        else:
            self._print_lines(content.removesuffix("\n").split("\n"), total, is_last=is_last)
        output.flush()

    def _print_lines(self, lines: Sequence[str], total: int, *, is_last: bool) -> None:
        if self._query.from_end:
            self._print_backwards(lines)
            return
        found = [line for line in map(_NumberedLine.parsed, lines) if line is not None]
        for line in self._new_lines(self._completed(found, total), is_last=is_last):
            self._print(line)

    def _completed(self, found: Sequence[_NumberedLine], total: int) -> list[_NumberedLine]:
        """Return `found` with all lines around its matches. A full page may lack some of its last match's."""
        before, after = self._query.around
        numbers = {line.number for line in found}
        matches = [line.number for line in found if line.is_match]
        needed = {
            near
            for number in matches
            for near in range(number - before, number + after + 1)
            if self._last_number < near <= total
        }
        missing = (_NumberedLine(number, "-", self._line_of(number)) for number in needed - numbers)
        return sorted([*found, *missing])

    def _new_lines(self, found: Sequence[_NumberedLine], *, is_last: bool) -> Iterator[_NumberedLine]:
        """Yield the lines that are new: two pages may have the same lines around their matches.

        The end of a page waits until the next page shows which of its lines match too.
        """
        new = [line for line in found if line.number > self._last_number]
        waiting = [line for line in self._waiting_lines if not new or line.number < new[0].number]
        last = 0 if is_last else max((at for at, line in enumerate(new, 1) if line.is_match), default=0)
        self._waiting_lines = [] if is_last else new[last:]
        yield from waiting
        yield from new if is_last else new[:last]

    def _print_backwards(self, lines: Sequence[str]) -> None:
        """Print a page of a search from the end, which has its last lines first."""
        if self._last_number:
            output.line(self._paint(_GROUP_MARK, Style.SEPARATOR))
        for text in lines:
            line = _NumberedLine.parsed(text)
            self._last_number = 0
            if line is None:
                output.line(self._paint(_GROUP_MARK, Style.SEPARATOR))
            else:
                self._print(line)

    def _print(self, line: _NumberedLine) -> None:
        if self._query.is_around and self._last_number and line.number != self._last_number + 1:
            output.line(self._paint(_GROUP_MARK, Style.SEPARATOR))
        self._last_number = line.number
        if self._query.only:
            whole = self._line_of(line.number) if _is_cut(line.text) else line.text
            for start, end in self._spans(whole):
                output.line(self._prefix(line) + self._safe(whole[start:end]))
        else:
            shown = self._highlighted(line.text) if line.is_match else self._safe(line.text)
            output.line(self._prefix(line) + shown)

    def _prefix(self, line: _NumberedLine) -> str:
        if not self._query.numbers:
            return ""
        return self._paint(str(line.number), Style.NUMBER) + self._paint(line.mark, Style.SEPARATOR)

    def _highlighted(self, text: str) -> str:
        parts, done = [], 0
        for start, end in self._spans(text):
            parts += [self._safe(text[done:start]), self._paint(self._safe(text[start:end]), Style.MATCH)]
            done = end
        return "".join([*parts, self._safe(text[done:])])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the text matches."""
        return [] if self._matcher is None else self._matcher.spans(text)

    def _safe(self, text: str) -> str:
        return text if self._is_raw else printable(text)


def _is_cut(text: str) -> bool:
    return text.startswith(_ELLIPSIS) or (text.endswith(_ELLIPSIS) and len(text.encode()) > _MIN_CUT_BYTES)
