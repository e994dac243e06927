r"""The lines of a capture that match: run by run of whole lines, from either end.

A run is searched as a whole and line bounds are looked up only at matches. Lines are searched without their
end, `\n` or `\r\n`, and without escape sequences unless those are asked for. A line that is not UTF-8 is
searched as text and byte by byte, so bad bytes hide nothing. A line too long to hold is searched in parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.spools.local.pattern import Unsupported, compile_pattern
from overspill.spools.local.text import strip_escapes

if TYPE_CHECKING:
    import re
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
    """A line: its number in its run, from 0; its bytes, or those kept of it; where the match begins."""

    nth: int
    line: bytes
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
        self._alone = compile_pattern(pattern, fixed=fixed, ignore_case=ignore_case, alone=True)
        self._bytewise = _bytewise(pattern, fixed=fixed, ignore_case=ignore_case)
        self._invert, self._ansi = invert, ansi

    def lines(self, data: bytes) -> Iterator[Found]:
        """The lines wanted among the whole lines of `data`, in their order."""
        data = data if self._ansi else strip_escapes(data)
        data = data.removesuffix(b"\n")
        try:
            found = self._in_text(data.decode())
        except UnicodeDecodeError:
            found = self._one_by_one(data)
        return _others(data, found) if self._invert else found

    def _in_text(self, text: str) -> Iterator[Found]:
        """The lines of `text` that match."""
        index, start = 0, 0
        while start <= len(text) and (match := self._pattern.search(text, start)):
            low = text.rfind("\n", start, match.start()) + 1 or start
            high = text.find("\n", match.start())
            high = len(text) if high < 0 else high
            index += text.count("\n", start, low)
            at = match.start() - low
            if match.end() >= high:  # it may have taken the line's end along, which is not searched
                alone = self._alone.search(text[low:high].removesuffix("\r"))
                at = alone.start() if alone else -1
            if at >= 0:
                yield Found(index, text[low:high].encode(), len(text[low : low + at].encode()))
            index, start = index + 1, high + 1

    def _one_by_one(self, data: bytes) -> Iterator[Found]:
        for nth, line in enumerate(data.split(b"\n")):
            at = self._in_line(line.removesuffix(b"\r"))
            if at is not None:
                yield Found(nth, line, at)

    def _in_line(self, line: bytes) -> int | None:
        text = line.decode(errors="surrogateescape")
        match = self._alone.search(text)
        if match is not None:
            return len(text[: match.start()].encode(errors="surrogateescape"))
        if self._bytewise is None or text.encode(errors="ignore") == line:
            return None
        match = self._bytewise.search(line.decode("latin-1"))
        return match.start() if match else None

    def in_long_line(self, data: Bytes, run: Run, *, backwards: bool) -> Iterator[tuple[int, Found | None]]:
        """Part by part: how far it has been searched, and what was found there, which ends the search."""
        for part in _parts(run, backwards=backwards):
            piece = data.at(part.start, part.stop)
            piece = piece if self._ansi else strip_escapes(piece)
            begins = part.start == run.start and (backwards or not run.is_rest)
            ends = part.stop == run.stop and not (backwards and run.is_rest)
            at = self._in_part(piece, begins=begins, ends=ends)
            low = 0 if at is None else max(0, at - SAMPLE // 2)
            found = None if at is None else Found(0, piece[low : low + SAMPLE], at - low)
            yield (part.start if backwards else part.stop), found

    def _in_part(self, piece: bytes, *, begins: bool, ends: bool) -> int | None:
        """Where a match begins; the ends of the part are the line's own only where it `begins` and `ends`."""
        piece = piece.removesuffix(b"\n").removesuffix(b"\r") if ends else piece
        text = piece.decode(errors="surrogateescape")
        match = self._alone.search(text, 0 if begins else 1)
        if match is None or (match.end() == len(text) and not ends):
            return None
        return len(text[: match.start()].encode(errors="surrogateescape"))


def _parts(run: Run, *, backwards: bool) -> Iterator[Run]:
    start, stop, _ = run
    while True:
        part = Run(max(start, stop - HOLD), stop) if backwards else Run(start, min(stop, start + HOLD))
        yield part
        if part == Run(start, stop):
            return
        start, stop = (start, part.start + OVERLAP) if backwards else (part.stop - OVERLAP, stop)


def _bytewise(pattern: str, *, fixed: bool, ignore_case: bool) -> re.Pattern[str] | None:
    """The pattern over bytes, each one a character; None where it cannot be read that way."""
    source = pattern.encode().decode("latin-1")
    try:
        return compile_pattern(source, fixed=fixed, ignore_case=ignore_case, alone=True)
    except Unsupported:
        return None


def _others(data: bytes, found: Iterator[Found]) -> Iterator[Found]:
    """The lines of `data` that were not found."""
    match = next(found, None)
    for nth, line in enumerate(data.split(b"\n")):
        if match is not None and match.nth == nth:
            match = next(found, None)
        else:
            yield Found(nth, line, 0)
