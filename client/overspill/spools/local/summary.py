"""What a capture looks like without reading it: figures, first and last lines, repetition, errors.

Simpler than the service's: only the first bytes are looked at, and the shape of JSON is not told.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from overspill.spools.local.lines import Span, between, tail
from overspill.spools.local.text import cut_after, cut_before, decode, strip_escapes
from overspill.wire import Repeated, Severity, Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.spools.local.lines import Whole
    from overspill.wire import Text

LIMIT: Final = 16 * 1024 * 1024
"""Bytes that are looked at."""
_SHOWN: Final = 5
_LINE: Final = 240
"""Bytes shown of one line."""
_KEY: Final = 256
"""Bytes of a line that are compared."""
_GROUPS: Final = 10
_MOST_GROUPS: Final = 8192
_NUMBERS: Final = 20
_BEGINNING: Final = 4 * 1024
"""Bytes of a line that are looked at for repetition."""
_NUMBER: Final = re.compile(rb"(?:[a-fA-F]{0,6}[0-9]+[a-fA-F]{0,6})+")
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n")) + b"\x7f"
_ERROR: Final = re.compile(
    rb"error|exception|traceback|\bfail(?:ed|ures?)?\b|\bfatal\b|\bpanic|\bcritical\b|segmentation fault",
    re.IGNORECASE,
)
_WARNING: Final = re.compile(rb"\bwarn(?:ings?)?\b|deprecat(?:ed|ion)", re.IGNORECASE)


def summarised(whole: Whole, *, content_type: str, kind: str) -> Summary:
    scan = _Scan()
    for line in _lines(whole):
        scan.add(line)
    scanned = min(whole.data.size, LIMIT)
    return Summary(
        total_lines=whole.lines,
        total_bytes=whole.data.size,
        content_type=content_type,
        kind=kind,
        longest_line=scan.longest,
        mean_line=round(scan.size / scan.number, 1) if scan.number else 0.0,
        empty_lines=scan.empty,
        first_lines=_shown(between(whole, Span(1, _SHOWN))) if whole.lines else [],
        last_lines=_shown(tail(whole, _SHOWN), from_end=True),
        repeated=scan.repeated(),
        errors=Severity(count=scan.errors.total(), line_numbers=list(scan.errors)[:_NUMBERS]),
        warnings=Severity(count=scan.warnings.total(), line_numbers=list(scan.warnings)[:_NUMBERS]),
        scanned_bytes=scanned,
        truncated=scanned < whole.data.size,
    )


def _lines(whole: Whole) -> Iterator[bytes]:
    """The lines of what is looked at, without their ends; the last one may be cut."""
    held: list[bytes] = []
    for block in whole.data.blocks(0, min(whole.data.size, LIMIT)):
        *ended, rest = block.split(b"\n")
        for line in ended:
            yield b"".join([*held, line]).removesuffix(b"\r")
            held.clear()
        held.append(rest)
    if last := b"".join(held):
        yield last


class _Scan:
    def __init__(self) -> None:
        self.number = self.size = self.longest = self.empty = 0
        self.errors: Counter[int] = Counter()
        self.warnings: Counter[int] = Counter()
        self._groups: Counter[bytes] = Counter()
        self._firsts: dict[bytes, tuple[int, bytes]] = {}

    def add(self, line: bytes) -> None:
        self.number += 1
        self.size += len(line)
        self.longest = max(self.longest, len(line))
        self.empty += not line
        beginning = strip_escapes(line[:_BEGINNING])
        line = strip_escapes(line)
        for pattern, found in ((_ERROR, self.errors), (_WARNING, self.warnings)):
            if pattern.search(line):
                found[self.number] += 1
        self._group(beginning)

    def _group(self, line: bytes) -> None:
        """Count a line, of which `line` is the beginning, among those that look like it."""
        key = _NUMBER.sub(b"#", line.translate(None, _CONTROLS))[:_KEY].rstrip()
        if not key:
            return
        self._groups[key] += 1
        self._firsts.setdefault(key, (self.number, line.rstrip(b"\r")[: _LINE + 4]))
        if len(self._groups) > _MOST_GROUPS:
            self._groups = Counter(dict(self._groups.most_common(_MOST_GROUPS // 2)))
            self._firsts = {key: self._firsts[key] for key in self._groups}

    def repeated(self) -> list[Repeated]:
        groups = sorted(self._groups.items(), key=lambda group: (-group[1], self._firsts[group[0]][0]))
        return [
            Repeated(line=_excerpt(self._firsts[key][1]), count=count, first_line=self._firsts[key][0])
            for key, count in groups[:_GROUPS]
            if count > 1
        ]


def _shown(text: Text, *, from_end: bool = False) -> list[str]:
    """The lines of an answer, cut; `from_end` keeps the end of one that has lost its beginning."""
    count = text.end_line - text.start_line + 1
    *ended, last = text.content.encode().split(b"\n")
    lines = ([line.removesuffix(b"\r") for line in ended] + [last])[:count]
    if from_end and count == 1 and len(lines[0]) > _LINE:
        return ["…" + lines[0][cut_after(lines[0], len(lines[0]) - _LINE) :].decode()]
    return [_excerpt(line) for line in lines]


def _excerpt(line: bytes) -> str:
    """The beginning of a line as text."""
    stop = cut_before(line, _LINE)
    return decode(line[:stop]).text + ("…" if stop < len(line) else "")
