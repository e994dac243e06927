"""The screen of `overspill top`: a title, the table in the user's order, and what keys do."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from overspill.cli import output
from overspill.cli.color import Style
from overspill.cli.printable import printable_line
from overspill.cli.table import Column, Table, cut, period
from overspill.cli.top.figures import FIGURES, NAME, Activity, activities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.cli.color import Paint
    from overspill.wire import Stats

_MARKS: Final = "▾▴"
_AROUND: Final = 5
"""Lines of a screen that show no tool: the title, a message, the header, the sum, the keys."""


@dataclass
class View:
    """The user's view of the table. Keys change it."""

    paint: Paint
    by_tenant: bool = False
    sort: str = "kept-out"
    is_reversed: bool = False
    first: int = 0
    """The row that is shown first."""
    _rows: int = field(default=0, init=False)
    _room: int = field(default=1, init=False)

    def press(self, key: str) -> None:
        """Change the order, or which rows are shown."""
        names = [NAME, *FIGURES]
        moves = {"up": -1, "down": 1, "page up": -self._room, "page down": self._room}
        if key in ("left", "right"):
            step = 1 if key == "right" else -1
            self.sort = names[(names.index(self.sort) + step) % len(names)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
        elif key in ("home", "end"):
            self.first = 0 if key == "home" else self._rows
        self.first += moves.get(key, 0)

    def print(self, stats: Stats) -> None:
        """Print the table once. Raises `OSError`."""
        total, rows = self._sorted(stats)
        if not rows:
            output.say(_nothing(stats))
            return
        table = Table(self._columns(), self.paint)
        if table.is_exact:
            table.print([self._titles, *(self._cells(each, is_exact=True) for each in (total, *rows))])
        else:
            table.print([self._cells(each) for each in (total, *rows)])

    def lines(self, stats: Stats, message: str, width: int, height: int) -> list[str]:
        """Return the lines of a screen of that size. `message` is what went wrong, or empty."""
        total, rows = self._sorted(stats)
        self._rows, self._room = len(rows), max(1, height - _AROUND)
        self.first = max(0, min(self.first, self._rows - self._room))
        shown = rows[self.first : self.first + self._room]
        body = self._table([total, *shown], width) if rows else textwrap.wrap(_nothing(stats), width)
        above = [cut(self._title(stats), width), self.paint(cut(message, width), Style.WARNING), *body]
        above += [""] * (height - 1 - len(above))
        return [*above[: height - 1], cut(self._keys(), width)]

    def _table(self, rows: Sequence[Activity], width: int) -> list[str]:
        cells = [self._cells(each) for each in rows]
        header, total, *others = Table(self._columns(), self.paint).screen(cells, width)
        return [header, self.paint(total, Style.HEADER), *others]

    def _sorted(self, stats: Stats) -> tuple[Activity, list[Activity]]:
        """Return the sum, and the rows in the user's order: the largest first, and names from A to Z."""
        total, rows = activities(stats, by_tenant=self.by_tenant)
        rows.sort(key=lambda each: each.name, reverse=self.sort == NAME and self.is_reversed)
        if self.sort != NAME:
            rows.sort(key=self._rank, reverse=not self.is_reversed)
        return total, rows

    def _rank(self, activity: Activity) -> float:
        value = FIGURES[self.sort].value(activity)
        return float("-inf") if value is None else value

    @property
    def _titles(self) -> tuple[str, ...]:
        return ("TENANT" if self.by_tenant else "TOOL", *(each.title for each in FIGURES.values()))

    def _columns(self) -> list[Column]:
        name, *others = map(self._marked, (NAME, *FIGURES), self._titles)
        return [
            Column(name, min_width=8, rank=1),
            *(
                Column(title, is_number=True, rank=each.rank + 2, usual="")
                for title, each in zip(others, FIGURES.values(), strict=True)
            ),
        ]

    def _marked(self, name: str, title: str) -> str:
        return title + _MARKS[self.is_reversed] if name == self.sort else title

    def _cells(self, activity: Activity, *, is_exact: bool = False) -> tuple[str, ...]:
        values = [(each, each.value(activity)) for each in FIGURES.values()]
        shown = (
            "" if value is None else _exact(value) if is_exact else each.shown(value)
            for each, value in values
        )
        return (activity.name, *shown)

    def _title(self, stats: Stats) -> str:
        tenants = {row.tenant for row in stats.rows}
        whose = "all tenants" if self.by_tenant else printable_line("".join(tenants))
        at = f"{stats.until.astimezone(UTC):%H:%M:%S} UTC"
        order = f"by {self.sort}{', reversed' if self.is_reversed else ''}"
        return "  ".join(filter(None, ["overspill top", at, _span(stats), whose, order]))

    def _keys(self) -> str:
        last = min(self.first + self._room, self._rows)
        place = f"{self.first + 1}-{last} of {self._rows}  " if self._rows > self._room else ""
        return f"{place}q quit  ←→ sort  r reverse  ↑↓ scroll  space refresh"


def _span(stats: Stats) -> str:
    return f"last {period(stats.until - stats.since + timedelta(seconds=stats.step // 2))}"


def _nothing(stats: Stats) -> str:
    return f"no tool output and no capture in the {_span(stats)}; guards report once a minute"


def _exact(value: float) -> str:
    """Return a figure for programs: a count, bytes, or a ratio."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"
