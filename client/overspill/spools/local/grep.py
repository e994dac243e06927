"""Searching the lines of a capture, from either end, with bounds on matches, bytes and time.

The answers are the service's own for the same content. Where a search stops early `next` has a cursor, of
the service's form too, so that either goes on where the other stopped: `f` or `r` (from the end), the line,
and where the time ran out inside a line, with a dot, the offset in the capture. What the service adds behind
another dot is not needed here.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from overspill.spools.local.findings import Around, Findings
from overspill.spools.local.matching import SAMPLE, Found, Matcher, Run, runs
from overspill.spools.local.text import cleaned, seam
from overspill.wire import Text, approx_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from overspill.spools.local.lines import Whole
    from overspill.wire import GrepQuery

_CURSOR: Final = re.compile(r"([fr])(\d{1,15})(?:\.(\d{1,15})(?:\.[\d_-]{1,999})?)?", re.ASCII)


class WrongCursor(Exception):
    """A cursor that no such search of this capture has given."""


class Cursor(NamedTuple):
    line: int
    offset: int | None = None

    @classmethod
    def parse(cls, text: str, whole: Whole, *, backwards: bool) -> Cursor:
        """Raises `WrongCursor`."""
        match = _CURSOR.fullmatch(text)
        if match is None or (match[1] == "r") != backwards:
            raise WrongCursor
        cursor = cls(int(match[2]), int(match[3]) if match[3] else None)
        if not 1 <= cursor.line <= max(whole.lines, 1) or not 0 < (cursor.offset or 1) <= whole.data.size:
            raise WrongCursor
        return cursor

    def text(self, *, backwards: bool) -> str:
        offset = "" if self.offset is None else f".{self.offset}"
        return f"{'r' if backwards else 'f'}{self.line}{offset}"


def grep(query: GrepQuery, whole: Whole, *, is_late: Callable[[], bool]) -> Text:
    """The lines that match; `is_late` ends the search where it is.

    Raises `pattern.Unsupported` and `WrongCursor`.
    """
    search = _Search(query, whole, is_late)
    search.run()
    return search.answer()


class _Search:
    def __init__(self, query: GrepQuery, whole: Whole, is_late: Callable[[], bool]) -> None:
        self._query, self._whole, self._is_late = query, whole, is_late
        self._backwards = query.from_end
        self._matcher = Matcher(
            query.pattern,
            fixed=query.fixed,
            ignore_case=query.ignore_case,
            invert=query.invert,
            ansi=query.ansi,
        )
        around = Around(
            query.context if query.before is None else query.before,
            query.context if query.after is None else query.after,
        )
        self._findings = Findings(
            whole.data, query.max_matches, around, ansi=query.ansi, max_bytes=query.max_bytes
        )
        self._start = Cursor(max(whole.lines, 1) if query.from_end else 1)
        if query.cursor:
            self._start = Cursor.parse(query.cursor, whole, backwards=query.from_end)
        self._count = 0
        self._unsure: list[int] = []
        self._next: Cursor | None = None

    def run(self) -> None:
        number = self._start.line
        for run in self._runs():
            data = b"" if run.is_long else self._whole.data.at(run.start, run.stop)
            lines = 1 if run.is_long else _count_lines(data)
            if run.is_long:
                self._next = self._search_long(run, number)
            else:
                self._search(data, run.start, number - lines + 1 if self._backwards else number)
            number += -lines if self._backwards else lines
            if self._next is None and self._findings.is_full:
                self._next = self._behind(self._findings.matches[-1].line_number)
            elif self._next is None and self._is_late():
                self._next = Cursor(number)
            if self._next is not None:
                break
        if self._next is not None and not 1 <= self._next.line <= self._whole.lines:
            self._next = None

    def _runs(self) -> Iterator[Run]:
        data, (line, offset) = self._whole.data, self._start
        start = data.start_of_line(line) if line <= self._whole.lines else data.size
        if offset is None and self._backwards:
            return runs(data, 0, min(data.size, data.line_end(start) + 1), backwards=True)
        if offset is None:
            return runs(data, start, data.size, backwards=False)
        if not start <= offset <= data.line_end(start):
            raise WrongCursor
        return self._rest(start, offset)

    def _rest(self, start: int, offset: int) -> Iterator[Run]:
        """From inside a line on."""
        data = self._whole.data
        if self._backwards:
            yield Run(start, offset, is_rest=True)
            yield from runs(data, 0, start, backwards=True)
            return
        stop = min(data.size, data.line_end(offset) + 1)
        yield Run(offset, stop, is_rest=True)
        yield from runs(data, stop, data.size, backwards=False)

    def _search(self, data: bytes, start: int, first: int) -> None:
        """Search whole lines, which begin at `start` of the capture with line number `first`."""
        found: Iterable[Found] = self._matcher.lines(data)
        if self._query.count:
            self._count += sum(1 for _ in found)
            return
        room = self._findings.room
        chosen = list(found)[-room:] if self._backwards else list(islice(found, room))
        placed = list(_placed(data, chosen))
        for each, (low, high) in reversed(placed) if self._backwards else placed:
            if self._findings.is_full:
                break
            self._findings.add(first + each.nth, start + low, start + high, each.line, each.at)

    def _search_long(self, run: Run, number: int) -> Cursor | None:
        """Search a line that is too long to hold; a cursor inside it where the time runs out there."""
        found = None
        for reached, found in self._matcher.in_long_line(self._whole.data, run, backwards=self._backwards):
            if found is not None:
                break
            if self._is_late() and reached is not None:
                return Cursor(number, reached)
        if found is None and not self._matcher.is_exact:
            self._unsure.append(number)
        elif (found is None) == self._query.invert:
            self._count += 1
            self._show(run, number, found)
        return None

    def _show(self, run: Run, number: int, found: Found | None) -> None:
        if self._query.count:
            return
        data = self._whole.data
        start, stop = data.line_start(run.start), min(data.size, data.line_end(run.stop - 1) + 1)
        if found is None:
            beginning = data.at(start, start + SAMPLE)
            found = Found(0, cleaned(beginning[: seam(beginning, SAMPLE)], ansi=self._query.ansi), 0)
        self._findings.add(number, start, stop, found.line, found.at)

    def _behind(self, line: int) -> Cursor:
        return Cursor(line - 1 if self._backwards else line + 1)

    def answer(self) -> Text:
        """`start_line` and `end_line` bound the part that was searched."""
        findings, counting, whole = self._findings, self._query.count, self._whole
        content = str(self._count) if counting else findings.text(backwards=self._backwards)
        first, last = self._bounds()
        return Text(
            content=content,
            start_line=first,
            end_line=last,
            total_lines=whole.lines,
            total_bytes=whole.data.size,
            mode="grep",
            truncated=self._next is not None or findings.is_cut,
            approx_tokens=approx_tokens(len(content.encode())),
            next={"cursor": self._next.text(backwards=self._backwards)} if self._next else None,
            replaced=findings.replaced,
            matches=findings.matches,
            match_count=self._count if counting else len(findings.matches),
            incomplete=sorted(self._unsure) or UNSET,
        )

    def _bounds(self) -> tuple[int, int]:
        """The first and the last line that were searched."""
        line, offset = self._next or (0 if self._backwards else self._whole.lines + 1, None)
        if self._backwards:
            return (line if offset else line + 1), min(self._start.line, self._whole.lines)
        return self._start.line, (line if offset else line - 1)


def _placed(data: bytes, found: Iterable[Found]) -> Iterator[tuple[Found, tuple[int, int]]]:
    """Each with where its line starts and the next one begins in `data`."""
    nth, start = 0, 0
    for each in found:
        for _ in range(each.nth - nth):
            start = data.index(b"\n", start) + 1
        nth = each.nth
        stop = data.find(b"\n", start) + 1 or len(data)
        yield each, (start, stop)


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))
