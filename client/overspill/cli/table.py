"""Rows in columns, for people; every text in them is shown, not obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.cli import output
from overspill.cli.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

_WIDEST = 32


def tabulate(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], numbers: Collection[int], *, header: bool
) -> None:
    """`numbers` are the columns that stand to the right; the header is for terminals only."""
    shown = [tuple(visible_line(text) for text in row) for row in rows]
    if shown and header and output.is_terminal():
        shown.insert(0, columns)
    widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
    for row in shown:
        cells = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        output.line("  ".join(cells).rstrip())


def short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def instant(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
