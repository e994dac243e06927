"""The lines that look like errors in the part of a text that a preview leaves out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

SCANNED: Final = 2 * 1024 * 1024
"""Characters searched at either end of the part left out: it bounds the time that a preview takes."""
_LEAD: Final = 2
_MOST: Final = 6
_MOST_CANDIDATES: Final = 1_000
_EXCERPT: Final = 80
_SLICE: Final = 64 * 1024
_LONGEST_WORD: Final = len("egmentation fault")
_CANDIDATE: Final = re.compile(
    r"rror|ERROR|xception|EXCEPTION|raceback|TRACEBACK|ailed|FAIL|ailure|atal|FATAL|anic|PANIC|ritical|CRITICAL"
    r"|egmentation fault"
)
"""Literals alone, in their usual cases: the engine finds these ten times faster than it runs `_ERROR`."""
_ERROR: Final = re.compile(
    r"error|exception|traceback|\bfail(?:ed|ures?)?\b|\bfatal\b|\bpanic|\bcritical\b|segmentation fault",
    re.IGNORECASE,
)
_HARMLESS: Final = re.compile(
    r"\b(?:0|no|zero|without)\s+(?:\w+\s+)?(?:errors?|failures?|failed|exceptions?)\b"
    r"|(?:errors?|failures?|failed|exceptions?)\"?\s*[=:]\s*0\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Highlight:
    line_number: int
    text: str


def highlights(text: str, start: int, stop: int, *, max_bytes: int, max_lines: int) -> list[Highlight]:
    """Lines of `text[start:stop]` that look like errors: the first ones and the last ones, numbered from 1.

    `max_bytes` and `max_lines` bound all of them together, the newline after each included.
    """
    first = list(islice(_error_lines(text, start, min(stop, start + SCANNED)), _MOST))
    searched = start + SCANNED if len(first) < _MOST else first[-1][1]
    found = first + _last(text, max(searched, stop - SCANNED), stop)
    chosen = found if len(found) <= _MOST else found[:_LEAD] + found[_LEAD - _MOST :]
    return _within(_numbered(text, chosen), max_bytes, max_lines)


def _last(text: str, start: int, stop: int) -> list[tuple[int, int, int]]:
    """The last few of `_error_lines`, looked for from the end."""
    found: list[tuple[int, int, int]] = []
    while stop > start and len(found) < _MOST:
        floor = max(start, stop - 2 * _SLICE)
        begin = max(floor, text.rfind("\n", floor, max(floor, stop - _SLICE)) + 1)
        found = [*_error_lines(text, begin, stop), *found]
        stop = begin
    return found[-_MOST:]


def _error_lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Begin, end and place of the match of each line; a long line is cut to what surrounds the match."""
    for _ in range(_MOST_CANDIDATES):
        place = _candidate(text, start, stop)
        if place < 0:
            return
        floor = max(0, place - _EXCERPT)
        begin = text.rfind("\n", floor, place) + 1 or floor
        end = text.find("\n", place, place + 2 * _EXCERPT)
        end = min(len(text), place + 2 * _EXCERPT) if end < 0 else end
        start = end + 1
        if _ERROR.search(text, begin, end) and not _HARMLESS.search(text, begin, end):
            yield begin, end, place


def _candidate(text: str, start: int, stop: int) -> int:
    """Where a word for an error may stand, or -1; searched in slices that let other threads run between."""
    for at in range(start, stop, _SLICE):
        match = _CANDIDATE.search(text, at, min(at + _SLICE + _LONGEST_WORD, stop))
        if match is not None:
            return match.start()
    return -1


def _numbered(text: str, found: list[tuple[int, int, int]]) -> Iterator[Highlight]:
    number, counted = 1, 0
    for begin, end, place in found:
        number += measure.newlines(text, counted, place)
        counted = place
        yield Highlight(number, f"line {number:,}: {clean(text[begin:end]).strip()}")


def _within(items: Iterator[Highlight], max_bytes: int, max_lines: int) -> list[Highlight]:
    kept: list[Highlight] = []
    for item in items:
        max_bytes -= measure.size(item.text) + 1
        if max_bytes < 0 or len(kept) == max_lines:
            break
        kept.append(item)
    return kept
