"""What a search has found: matching lines with those around them, within what one answer may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.spools.local.lines import MAX_BYTES, MAX_LINES
from overspill.spools.local.text import cleaned, cut_after, cut_before, decode, seam
from overspill.wire import Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.spools.local.places import Bytes

LINE: Final = 2 * 1024
"""Bytes shown of one line."""
CUT: Final = "…"
"""Stands where a line was cut."""
_REPLACED: Final = "\ufffd"
_PREFIX: Final = 8
"""Bytes that a line's number and its mark take in the text of an answer, about."""
_ENOUGH: Final = 64 * 1024
"""Bytes read of a line around a match: what is left of them without escape sequences is enough to show."""


class Around(NamedTuple):
    """How many lines before and after each match are to be given."""

    before: int
    after: int


class _Shown(NamedTuple):
    """One line as it is shown, and whether U+FFFD stands in it for bytes that are not UTF-8."""

    text: str
    has_replaced: bool

    @property
    def cost(self) -> int:
        """What it takes of an answer's bytes."""
        return len(self.text.encode()) + _PREFIX


class Findings:
    """Takes matches in the order of the search until `is_full`."""

    def __init__(
        self, data: Bytes, limit: int, around: Around, *, ansi: bool, max_bytes: int | None = None
    ) -> None:
        self._data, self._limit, self._around, self._ansi = data, limit, around, ansi
        self._room = MAX_BYTES if max_bytes is None else max_bytes
        self._lines_left, self._line = MAX_LINES, min(LINE, self._room // 2)
        self.matches: list[Match] = []
        self.is_full = False
        self.is_cut = False
        """Whether lines around a match are missing, since the answer has no room for them."""
        self.replaced = False

    @property
    def room(self) -> int:
        """How many more matches may be added."""
        return 0 if self.is_full else self._limit - len(self.matches)

    def add(self, number: int, start: int, stop: int, line: str, at: int) -> None:
        """Line `number` from `start` to `stop` of the capture; `line` is what to show of it, around `at`."""
        shown = self._shown(line, at, start, stop)
        before, after = list(self._before(start)), list(self._after(stop))
        if self.matches and not self._fits(shown, *before, *after):
            self.is_full = True
            return
        self._spend(shown)
        taken_before = self._affordable(before)[::-1]
        taken_after = self._affordable(after)
        self.replaced = (
            any(each.has_replaced for each in (shown, *taken_before, *taken_after)) or self.replaced
        )
        self.matches.append(
            Match(
                line_number=number,
                line=shown.text,
                before=[each.text for each in taken_before],
                after=[each.text for each in taken_after],
            )
        )
        self.is_full = self.is_full or len(self.matches) == self._limit

    def _before(self, start: int) -> Iterator[_Shown]:
        """The lines before `start`, the nearest first."""
        for _ in range(self._around.before):
            if start == 0:
                return
            stop, start = start, self._data.line_start(start - 1)
            yield self._beginning(start, stop)

    def _after(self, stop: int) -> Iterator[_Shown]:
        for _ in range(self._around.after):
            if stop >= self._data.size:
                return
            start, stop = stop, self._data.line_end(stop) + 1
            yield self._beginning(start, stop)

    def _beginning(self, start: int, stop: int) -> _Shown:
        data = self._data.at(start, min(stop, start + _ENOUGH))
        if start + len(data) < min(stop, self._data.size):
            data = data[: seam(data, len(data))]
        text = cleaned(data, ansi=self._ansi)
        return self._shown(text.removesuffix("\n") if data.endswith(b"\n") else text, 0, start, stop)

    def _affordable(self, lines: Iterable[_Shown]) -> list[_Shown]:
        """The first of these that the answer has room for; where it has not, the search ends."""
        taken = []
        for line in lines:
            if not self._fits(line):
                self.is_full = self.is_cut = True
                break
            self._spend(line)
            taken.append(line)
        return taken

    def _fits(self, *lines: _Shown) -> bool:
        return self._lines_left >= len(lines) and self._room >= sum(line.cost for line in lines)

    def _spend(self, line: _Shown) -> None:
        self._lines_left -= 1
        self._room -= line.cost

    def _shown(self, line: str, at: int, start: int, stop: int) -> _Shown:
        """A line as text; of a long one the part around character `at`, with `CUT` at its cuts."""
        data, at = line.encode(), len(line[:at].encode())
        low, high = 0, len(data)
        if high > self._line:
            low = min(max(0, at - self._line // 2), high - self._line)
            low, high = cut_after(data, low), cut_before(data, low + self._line)
        text = decode(data[low:high], ansi=True).text
        has_replaced = _REPLACED in text and decode(self._data.at(start, min(stop, start + _ENOUGH))).replaced
        return _Shown(CUT * (low > 0) + text + CUT * (high < len(data)), has_replaced)

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
