"""Summarize a capture: figures, first and last lines, repeated lines, errors and warnings, the shape of JSON.

Drive a `Summarizer` as `chunks` says. It wants the last chunks first, and then all from the start until the
end, its limit or its time is reached. What it holds does not grow with the capture.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from overspill.reading.chunks import Caps, Extent, Wanted
from overspill.reading.grep import Search, never
from overspill.reading.json_shape import HEAD_BYTES, WHOLE_BYTES, shape_of
from overspill.reading.lines import head, tail
from overspill.reading.patterns import IS_ANY_PATTERN_POSSIBLE, compile_pattern
from overspill.reading.plain_patterns import PlainPattern
from overspill.reading.repeats import BEGINNING_BYTES, RepeatedLines, excerpt, key_of, mask
from overspill.reading.text import cut_after
from overspill.wire import GrepQuery, Severity, Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.chunks import Chunk
    from overspill.reading.patterns import Pattern
    from overspill.wire import Text

SCAN_LIMIT_BYTES: Final = 64 * 2**20
"""The most bytes to read, unless the caller says otherwise."""
_SHOWN: Final = Caps(lines=5, size=16 * 1024)
"""The most lines and bytes that are shown of the beginning, and of the end."""
_LINE: Final = 240
"""Bytes shown of one line."""
_GROUPS: Final = 10
NUMBERS: Final = 20
"""The number of errors, and of warnings, that are listed by line number, unless the query says otherwise."""
_ERRORS: Final = (
    r"error|exception|traceback|\bfail(?:ed|ures?)?\b|\bfatal\b|\bpanic|\bcritical\b|segmentation fault"
)
_WARNINGS: Final = r"\bwarn(?:ings?)?\b|deprecat(?:ed|ion)"


class Summarizer:
    """Reads chunks of a capture, from its beginning or its end, and summarizes them."""

    def __init__(
        self,
        extent: Extent,
        *,
        content_type: str,
        kind: str,
        limit: int = SCAN_LIMIT_BYTES,
        expired: Callable[[], bool] = never,
        masked: Callable[[bytes], bytes] = mask,
        numbers: int = NUMBERS,
    ) -> None:
        """`expired` says that the time is up; it is asked after each chunk. `masked` is as `repeats.mask`.

        `numbers` is how many errors, and how many warnings, are listed by line number.
        """
        self._extent, self._content_type, self._kind = extent, content_type, kind
        self._limit, self._expired = limit, expired
        self._first, self._last = (
            head(_SHOWN.lines, extent, caps=_SHOWN),
            tail(_SHOWN.lines, extent, caps=_SHOWN),
        )
        self._lines = _Lines(masked)
        self._errors, self._warnings = (_Severe(each, extent, numbers) for each in (_ERRORS, _WARNINGS))
        self._json = bytearray()
        self._shape: str | None = None
        self._json_size = (extent.size if extent.size <= WHOLE_BYTES else HEAD_BYTES) if kind == "json" else 0
        self._scanned = 0
        self.wanted = self._last.wanted

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        if self._last.wanted is not None:
            self._last.feed(chunk)
            if self._last.wanted is not None or chunk.start:
                self.wanted = self._last.wanted or Wanted(span=self._limit)
                return
        self._scan(chunk)
        is_enough = self._scanned >= min(self._extent.size, self._limit) or self._expired()
        self.wanted = None if is_enough else Wanted(offset=self._scanned, span=self._limit - self._scanned)

    def _scan(self, chunk: Chunk) -> None:
        if self._first.wanted is not None:
            self._first.feed(chunk)
        self._look_at_json(chunk)
        self._errors.feed(chunk)
        self._warnings.feed(chunk)
        self._scanned = chunk.start + len(chunk.data)
        self._lines.add(chunk, is_last=self._scanned == self._extent.size)

    def _look_at_json(self, chunk: Chunk) -> None:
        """Find the shape as soon as enough bytes are there, so that the work counts as time spent."""
        if len(self._json) == self._json_size:
            return
        self._json += chunk.data[: self._json_size - len(self._json)]
        if len(self._json) == self._json_size:
            self._shape = shape_of(bytes(self._json), is_whole=self._json_size == self._extent.size)

    def _shape_so_far(self) -> str | None:
        """Return the shape if the scan stopped early: from the bytes that were read."""
        if len(self._json) == self._json_size:
            return None
        return shape_of(bytes(self._json[:HEAD_BYTES]), is_whole=False)

    def answer(self) -> Summary:
        """Return the summary, once `wanted` is None."""
        extent, lines = self._extent, self._lines
        return Summary(
            total_lines=extent.lines,
            total_bytes=extent.size,
            content_type=self._content_type,
            kind=self._kind,
            longest_line=max(lines.longest, lines.held_size),
            mean_line=round(lines.size / lines.number, 1) if lines.number else 0.0,
            empty_lines=lines.empty,
            first_lines=_clipped_lines(self._first.answer()),
            last_lines=_clipped_lines(self._last.answer(), from_end=True),
            repeated=lines.repeats.top(_GROUPS),
            errors=self._errors.answer(),
            warnings=self._warnings.answer(),
            json_shape=self._shape or self._shape_so_far(),
            scanned_bytes=self._scanned,
            truncated=self._scanned < extent.size,
        )


def _clipped_lines(text: Text, *, from_end: bool = False) -> list[str]:
    """Return the lines of an answer, clipped. `from_end` keeps the end of a line that lost its beginning."""
    count = text.end_line - text.start_line + 1
    *ended, last = text.content.encode().split(b"\n")
    lines = ([line.removesuffix(b"\r") for line in ended] + [last])[:count]
    if from_end and count == 1 and len(lines[0]) > _LINE:
        return ["…" + lines[0][cut_after(lines[0], len(lines[0]) - _LINE) :].decode()]
    return [excerpt(line, _LINE) for line in lines]


class _Severe:
    """Counts the lines that match a pattern, and lists the first."""

    def __init__(self, pattern: str, extent: Extent, numbers: int) -> None:
        self._pattern, self._extent = pattern, extent
        self._compiled = _compiled(pattern)
        self._first = Search(
            GrepQuery(pattern=pattern, ignore_case=True, max_matches=numbers),
            extent,
            caps=Caps(line_size=1),
            pattern=self._compiled,
        )
        self._more: Search | None = None

    def feed(self, chunk: Chunk) -> None:
        if self._more is not None:
            self._more.feed(chunk)
            return
        self._first.feed(chunk)
        following = self._first.answer().next if self._first.wanted is None else None
        if following is not None:
            query = GrepQuery(pattern=self._pattern, ignore_case=True, count=True, cursor=following["cursor"])
            self._more = Search(query, self._extent, pattern=self._compiled)
            self._more.feed(chunk)

    def answer(self) -> Severity:
        first = self._first.answer().matches or []
        counted = self._more.answer().match_count if self._more else 0
        return Severity(
            count=len(first) + (counted or 0), line_numbers=[match.line_number for match in first]
        )


@cache
def _compiled(pattern: str) -> Pattern:
    """Compile a pattern of this module, with any engine, once: it takes longer than most summaries."""
    if IS_ANY_PATTERN_POSSIBLE:
        return compile_pattern(pattern, ignore_case=True)
    return PlainPattern(pattern.encode(), longest=len(pattern), ignore_case=True)


class _Lines:
    """Lengths and repetition of lines. Of a line that reaches over chunks only the beginning is held."""

    def __init__(self, masked: Callable[[bytes], bytes]) -> None:
        self._mask = masked
        self.repeats = RepeatedLines()
        self.number = self.size = self.longest = self.empty = self.held_size = 0
        self._beginning = b""
        self._held_return = False

    def add(self, chunk: Chunk, *, is_last: bool) -> None:
        data = chunk.data
        is_unended = is_last and not data.endswith(b"\n")
        if is_unended:
            data += b"\n"
        *ended, rest = data.split(b"\n")
        if ended:
            self._take(data[: len(data) - len(rest)], ended, is_unended=is_unended)
        self._beginning = (self._beginning + rest[:BEGINNING_BYTES])[:BEGINNING_BYTES]
        self.held_size += len(rest)
        self._held_return = rest.endswith(b"\r") if rest else self._held_return and not ended

    def _take(self, data: bytes, lines: list[bytes], *, is_unended: bool) -> None:
        r"""Take the `lines` of `data`, which ends with `\n`; if `is_unended`, that was added to it."""
        sizes = self._sizes(lines, is_unended=is_unended)
        self.longest = max(self.longest, *sizes)
        self.size += sum(sizes)
        self.empty += sizes.count(0)

        def line(number: int) -> bytes:
            return (
                lines[number][:BEGINNING_BYTES]
                if number
                else (self._beginning + lines[0][:BEGINNING_BYTES])[:BEGINNING_BYTES]
            )

        keys = [key_of(key) for key in self._mask(data[:-1]).split(b"\n")]
        for number in (n for n, each in enumerate(lines) if len(each) > BEGINNING_BYTES or not n):
            keys[number] = key_of(self._mask(line(number)))
        self.repeats.add(keys, self.number + 1, line)
        self.number += len(lines)
        self._beginning, self.held_size = b"", 0

    def _sizes(self, lines: list[bytes], *, is_unended: bool) -> list[int]:
        r"""Return the bytes of each line without `\r\n`. The first includes what is held of it."""
        returns = [line.endswith(b"\r") for line in lines]
        if not lines[0]:
            returns[0] = self._held_return
        if is_unended:
            returns[-1] = False
        sizes = [len(line) - ends for line, ends in zip(lines, returns, strict=True)]
        sizes[0] += self.held_size
        return sizes
