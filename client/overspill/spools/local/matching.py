r"""The lines of a capture that match: run by run of whole lines, from either end.

A run is searched as a whole and line bounds are looked up only at matches. What is searched is what is shown:
no escape sequences unless those are asked for, U+FFFD for bytes that are not UTF-8, and lines without their
end, `\n` or `\r\n`. A line too long to hold is searched in parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.spools.local.pattern import compile_pattern, longest
from overspill.spools.local.text import LONGEST_ESCAPE, cleaned, seam

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.spools.local.places import Bytes

RUN: Final = 256 * 1024
HOLD: Final = 8 * 1024 * 1024
"""A line of up to so many bytes is searched as a whole."""
OVERLAP: Final = 1024 * 1024
"""Bytes of a longer line that are searched again with those that follow."""
SAMPLE: Final = 8 * 1024
"""Bytes kept around a match in a longer line, or of its beginning."""


class Run(NamedTuple):
    """`start` to `stop` of a capture: whole lines, or one that is too long to hold, or its rest."""

    start: int
    stop: int
    is_rest: bool = False

    @property
    def is_long(self) -> bool:
        return self.is_rest or self.stop - self.start > HOLD


class Found(NamedTuple):
    """A line: its number in its run, from 0; its text, or what is kept of it; where the match begins."""

    nth: int
    line: str
    at: int


def runs(data: Bytes, start: int, stop: int, *, backwards: bool) -> Iterator[Run]:
    """All of `start` to `stop`, which are bounds of lines; the last run first where backwards."""
    while start < stop:
        run = _last_run(data, start, stop) if backwards else _first_run(data, start, stop)
        yield run
        start, stop = (start, run.start) if backwards else (run.stop, stop)


def _first_run(data: Bytes, start: int, stop: int) -> Run:
    if stop - start <= RUN:
        return Run(start, stop)
    run = Run(start, min(stop, data.line_end(start + RUN - 1) + 1))
    last = data.line_start(start + RUN - 1) if run.is_long else start
    return Run(start, last) if last > start else run


def _last_run(data: Bytes, start: int, stop: int) -> Run:
    if stop - start <= RUN:
        return Run(start, stop)
    run = Run(max(start, data.line_start(stop - RUN)), stop)
    first_end = min(stop, data.line_end(run.start) + 1) if run.is_long else stop
    return Run(first_end, stop) if first_end < stop else run


class Matcher:
    def __init__(self, pattern: str, *, fixed: bool, ignore_case: bool, invert: bool, ansi: bool) -> None:
        """Raises `Unsupported`."""
        self._pattern = compile_pattern(pattern, fixed=fixed, ignore_case=ignore_case)
        self.is_exact = fixed or 4 * longest(pattern) < OVERLAP // 2
        """Whether a line that is searched in parts is sure not to match where nothing was found."""
        self._invert, self._ansi = invert, ansi

    def lines(self, data: bytes) -> Iterator[Found]:
        """The lines wanted among the whole lines of `data`, in their order."""
        is_ended = data.endswith(b"\n")
        text = cleaned(data, ansi=self._ansi)
        text = text.removesuffix("\n") if is_ended else text
        found = self._in_text(text, is_ended=is_ended)
        return _others(text, found) if self._invert else found

    def _in_text(self, text: str, *, is_ended: bool) -> Iterator[Found]:
        """The lines of `text` that match."""
        index, start, last = 0, 0, -1
        while start <= len(text) and (match := self._pattern.search(text, start)):
            low = text.rfind("\n", start, match.start()) + 1 or start
            high = text.find("\n", match.start())
            high = len(text) if high < 0 else high
            index += text.count("\n", start, low)
            if match.end() <= high:
                yield Found(index, text[low:high], match.start() - low)
                last = low
            elif (alone := self._pattern.search(text[low:high])) is not None:
                yield Found(index, text[low:high], alone.start())
                last = low
            index, start = index + 1, high + 1
        if not is_ended and text.endswith("\r"):
            yield from self._with_half_an_end(text, last)

    def _with_half_an_end(self, text: str, last: int) -> Iterator[Found]:
        r"""The last line, unless it was found: `$` also holds before a final `\r`, half a line end."""
        low = text.rfind("\n") + 1
        match = self._pattern.search(text[low:-1]) if last != low else None
        if match is not None:
            yield Found(text.count("\n"), text[low:], match.start())

    def in_long_line(
        self, data: Bytes, run: Run, *, backwards: bool
    ) -> Iterator[tuple[int | None, Found | None]]:
        """Part by part: where to go on, None behind the last, and what was found, which ends the search."""
        for part in _parts(run, backwards=backwards):
            piece = data.at(part.start, part.stop)
            begins = part.start == run.start and (backwards or not run.is_rest)
            ends = part.stop == run.stop and not (backwards and run.is_rest)
            low = 0 if begins else seam(piece, 2 * LONGEST_ESCAPE)
            high = len(piece) if ends else seam(piece, len(piece))
            found = self._in_part(cleaned(piece[low:high], ansi=self._ansi), begins=begins, ends=ends)
            if part.start == run.start if backwards else part.stop == run.stop:
                yield None, found
            else:
                yield (part.start + OVERLAP if backwards else part.stop - OVERLAP), found

    def _in_part(self, text: str, *, begins: bool, ends: bool) -> Found | None:
        """What is found; the ends of the part are the line's own only where it `begins` and `ends`."""
        text = text.removesuffix("\n") if ends else text
        match = self._pattern.search(text, 0 if begins else 1)
        if match is None or (match.end() == len(text) and not ends):
            return None
        low = max(0, match.start() - SAMPLE // 2)
        return Found(0, text[low : low + SAMPLE], match.start() - low)


def _parts(run: Run, *, backwards: bool) -> Iterator[Run]:
    start, stop, _ = run
    while True:
        part = Run(max(start, stop - HOLD), stop) if backwards else Run(start, min(stop, start + HOLD))
        yield part
        if part == Run(start, stop):
            return
        start, stop = (start, part.start + OVERLAP) if backwards else (part.stop - OVERLAP, stop)


def _others(text: str, found: Iterator[Found]) -> Iterator[Found]:
    """The lines of `text` that were not found."""
    match = next(found, None)
    for nth, line in enumerate(text.split("\n")):
        if match is not None and match.nth == nth:
            match = next(found, None)
        else:
            yield Found(nth, line, 0)
