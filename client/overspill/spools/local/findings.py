"""What a search has found: matching lines with those around them, within what one answer may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.spools.local.lines import MAX_BYTES, MAX_LINES
from overspill.spools.local.text import cut_after, cut_before, decode, strip_escapes
from overspill.wire import Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.spools.local.places import Bytes

LINE: Final = 2 * 1024
"""Bytes shown of one line."""
CUT: Final = "…"
"""Stands where a line was cut."""
_PREFIX: Final = 8
"""Bytes that a line's number and its mark take in the text of an answer, about."""
_ENOUGH: Final = 64 * 1024
"""Bytes read of a line around a match: what is left of them without escape sequences is enough to show."""


class Around(NamedTuple):
    """How many lines before and after each match are to be given."""

    before: int
    after: int


class Findings:
    """Takes matches in the order of the search until `is_full`."""

    def __init__(self, data: Bytes, limit: int, around: Around, *, ansi: bool) -> None:
        self._data, self._limit, self._around, self._ansi = data, limit, around, ansi
        self._room, self._lines_left = MAX_BYTES, MAX_LINES
        self.matches: list[Match] = []
        self.is_full = False
        self.replaced = False

    @property
    def room(self) -> int:
        """How many more matches may be added."""
        return 0 if self.is_full else self._limit - len(self.matches)

    def add(self, number: int, start: int, stop: int, line: bytes, at: int) -> None:
        """Line `number` from `start` to `stop` of the capture; `line` is what to show of it, around `at`."""
        text = self._clip(line, at)
        if self.matches and not self._fits(text):
            self.is_full = True
            return
        self._spend(text)
        before = self._affordable(self._before(start))[::-1]
        after = self._affordable(self._after(stop))
        self.matches.append(Match(line_number=number, line=text, before=before, after=after))
        self.is_full = self.is_full or len(self.matches) == self._limit

    def _before(self, start: int) -> Iterator[str]:
        """The lines before `start`, the nearest first."""
        for _ in range(self._around.before):
            if start == 0:
                return
            stop, start = start, self._data.line_start(start - 1)
            yield self._beginning(start, stop)

    def _after(self, stop: int) -> Iterator[str]:
        for _ in range(self._around.after):
            if stop >= self._data.size:
                return
            start, stop = stop, self._data.line_end(stop) + 1
            yield self._beginning(start, stop)

    def _beginning(self, start: int, stop: int) -> str:
        data = self._data.at(start, min(stop, start + _ENOUGH))
        return self._clip((data if self._ansi else strip_escapes(data)).removesuffix(b"\n"), 0)

    def _affordable(self, texts: Iterable[str]) -> list[str]:
        """The first of these that the answer has room for; where it has not, the search ends."""
        taken = []
        for text in texts:
            if not self._fits(text):
                self.is_full = True
                break
            self._spend(text)
            taken.append(text)
        return taken

    def _fits(self, text: str) -> bool:
        return self._lines_left > 0 and self._room >= len(text.encode()) + _PREFIX

    def _spend(self, text: str) -> None:
        self._lines_left -= 1
        self._room -= len(text.encode()) + _PREFIX

    def _clip(self, line: bytes, at: int) -> str:
        """A line without its end as text; of a long one the part around `at`, with `CUT` at its cuts."""
        line = line.removesuffix(b"\r")
        start, stop = 0, len(line)
        if stop > LINE:
            start = min(max(0, at - LINE // 2), stop - LINE)
            start, stop = cut_after(line, start), cut_before(line, start + LINE)
        decoded = decode(line[start:stop], ansi=self._ansi)
        self.replaced = self.replaced or decoded.replaced
        return CUT * (start > 0) + decoded.text + CUT * (stop < len(line))

    def text(self, *, backwards: bool) -> str:
        """The matches as `grep -n` shows them: `12:match`, `11-around`, `--` between groups.

        Backwards the groups come last first; the lines of one stay in their order.
        """
        groups = list(_groups(dict(self._marked())))
        separator = "--\n" if any(self._around) else ""
        return separator.join("".join(group) for group in (groups[::-1] if backwards else groups))

    def _marked(self) -> Iterator[tuple[int, str]]:
        for match in self.matches:
            for number, text in enumerate(match.before, match.line_number - len(match.before)):
                yield number, f"{number}-{text}\n"
            for number, text in enumerate(match.after, match.line_number + 1):
                yield number, f"{number}-{text}\n"
        for match in self.matches:
            yield match.line_number, f"{match.line_number}:{match.line}\n"


def _groups(lines: dict[int, str]) -> Iterator[list[str]]:
    """Runs of consecutive lines."""
    group: list[str] = []
    for number in sorted(lines):
        if group and number - 1 not in lines:
            yield group
            group = []
        group.append(lines[number])
    if group:
        yield group
