"""Rows in columns, and facts with their names. Every text in them is made printable.

A terminal gets a header, and no line is wider than it: long cells are cut, long texts wrap, and columns
without room or without news are left out. A pipe gets every cell whole, and no header.
"""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from overspill.cli import output
from overspill.cli.color import Style
from overspill.cli.printable import printable_line
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from overspill.cli.color import Paint

EMPTY_CELL: Final = "-"
_GAP: Final = 2
_ELLIPSIS: Final = "…"
_UNITS: Final = (("w", 7 * 86_400), ("d", 86_400), ("h", 3600), ("m", 60))


@dataclass(frozen=True)
class Column:
    """A column. On a terminal it may shrink to `min_width` characters (0: never).

    Where not even that has room, the columns with a `rank` are left out, the highest first. A column whose
    cells all are `usual` is left out on a terminal.
    """

    title: str
    is_number: bool = False
    min_width: int = 0
    rank: int = 0
    usual: str = EMPTY_CELL
    wraps: bool = False
    """Whether a text that is too long goes on in further lines. Only the last column may."""


class Table:
    """Prints rows as they come. On a terminal the first rows decide the widths."""

    def __init__(self, columns: Sequence[Column], paint: Paint) -> None:
        self._columns, self._paint = columns, paint
        self._drawn_at = datetime.now(UTC)
        self._widths: list[int] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether cells are for programs: instants and bytes, not ages and sizes."""
        return not output.is_terminal()

    def age(self, moment: datetime) -> str:
        """Return the cell of a time that has passed."""
        return instant(moment) if self.is_exact else period(self._drawn_at - moment)

    def time_left(self, moment: datetime) -> str:
        """Return the cell of a time that is to come."""
        return instant(moment) if self.is_exact else period(moment - self._drawn_at)

    def size(self, number: int) -> str:
        """Return the cell of a number of bytes."""
        return str(number) if self.is_exact else size(number)

    def count(self, number: int) -> str:
        """Return the cell of a number of lines."""
        return str(number) if self.is_exact else f"{number:,}"

    def print(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print more rows. Raises `OSError`."""
        shown = [[printable_line(text) or EMPTY_CELL for text in row] for row in rows]
        if not shown:
            return
        if self.is_exact:
            self._widths = self._needed_widths(shown)
        elif self._widths is None:
            self._widths = self._fitting_widths(shown, _terminal_width())
            output.line(self._header())
        for cells in shown:
            for line in self._lines(cells):
                output.line(line)

    def screen(self, rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
        """Return the header and the rows as lines of a terminal of that width."""
        shown = [[printable_line(text) or EMPTY_CELL for text in row] for row in rows]
        self._widths = self._fitting_widths(shown, width)
        return [self._header(), *(self._line(cells) for cells in shown)]

    def _header(self) -> str:
        return self._line([column.title for column in self._columns], Style.HEADER)

    def _lines(self, cells: Sequence[str]) -> list[str]:
        """Return a row: one line, or more if its last cell wraps."""
        assert self._widths is not None
        *others, last = cells
        if not self._columns[-1].wraps or width_of(last) <= self._widths[-1]:
            return [self._line(cells)]
        first, *further = textwrap.wrap(last, self._widths[-1])
        before = [""] * len(others)
        return [self._line([*others, first]), *(self._line([*before, text]) for text in further)]

    def _line(self, cells: Sequence[str], style: Style | None = None) -> str:
        assert self._widths is not None
        parts = [
            padded(cell, width, to_right=column.is_number)
            for cell, width, column in zip(cells, self._widths, self._columns, strict=True)
            if width
        ]
        line = (" " * _GAP).join(parts).rstrip()
        return line if style is None else self._paint(line, style)

    def _needed_widths(self, rows: Sequence[Sequence[str]]) -> list[int]:
        return [max(map(width_of, cells)) for cells in zip(*rows, strict=True)]

    def _fitting_widths(self, rows: Sequence[Sequence[str]], room: int) -> list[int]:
        """Return widths that fit on a line of `room` columns; 0 for a column that is left out."""
        titles = [column.title for column in self._columns]
        widths = self._needed_widths([titles, *rows])
        for at, column in enumerate(self._columns):
            if rows and all(row[at] == column.usual for row in rows):
                widths[at] = 0
        minimums = [
            min(width, column.min_width) or width for width, column in zip(widths, self._columns, strict=True)
        ]
        for at in sorted(range(len(widths)), key=lambda at: -self._columns[at].rank):
            if _line_width(minimums) > room and self._columns[at].rank:
                widths[at] = minimums[at] = 0
        return _with_free_room(widths, minimums, room)


def print_facts(facts: dict[str, str]) -> None:
    """Print each fact that has a value behind its name, aligned. Raises `OSError`."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value:
            output.line(f"{printable_line(name):<{width}}  {printable_line(value)}")


def _line_width(widths: Sequence[int]) -> int:
    """Return how wide a line of these columns is."""
    used = [width for width in widths if width]
    return sum(used) + _GAP * (len(used) - 1)


def _with_free_room(widths: Sequence[int], minimums: Sequence[int], room: int) -> list[int]:
    """Return `minimums` plus the free room, given one character at a time to columns that need more."""
    result, left = list(minimums), room - _line_width(minimums)
    while left > 0 and (short := [at for at, width in enumerate(widths) if result[at] < width]):
        for at in short[:left]:
            result[at] += 1
        left -= min(left, len(short))
    return result


def _terminal_width() -> int:
    return shutil.get_terminal_size().columns


def fitting(text: str, before: int = 0) -> str:
    """Cut `text` to a terminal's line after `before` columns. Without a terminal, return it whole."""
    return cut(text, max(1, _terminal_width() - before)) if output.is_terminal() else text


def width_of(text: str) -> int:
    """Return the columns that `text` takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_width_of_character, text))


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, with a mark if it was cut."""
    if width_of(text) <= width:
        return text
    used, end = 0, 0
    while used + _width_of_character(text[end]) < width:
        used += _width_of_character(text[end])
        end += 1
    return text[:end] + _ELLIPSIS


def padded(text: str, width: int, *, to_right: bool = False) -> str:
    """Return `text` in exactly `width` columns."""
    text = cut(text, width)
    fill = " " * (width - width_of(text))
    return fill + text if to_right else text + fill


def _width_of_character(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def instant(moment: datetime) -> str:
    """Return a time in UTC, as programs read it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def period(length: timedelta) -> str:
    """Return a duration as `12s`, `5m`, `3h`, `6d` or `8w`, rounded down. A negative one is `0s`."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in _UNITS:
        if seconds >= 2 * size or (seconds >= size and unit in "mhd"):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def size(number: float) -> str:
    """Return a number of bytes in few columns: `512 B`, `4.2 MB`."""
    figure, prefix = quantities.scaled(number)
    return f"{figure} {prefix}B"
