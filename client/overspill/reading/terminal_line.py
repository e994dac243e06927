r"""A line of a terminal that was written to more than once, such as a progress bar or an edited command.

    BS  CSI n D    to the left              CR     CSI n G    to the start of the row, to a column
        CSI n C    to the right             ESC 7 … CSI r;c H … ESC 8    drawn elsewhere, as apt's progress
    CSI n K  J     erase from here on (0), to here (1), or all (2)
    CSI n P @ X    delete, insert or erase characters
    ESC ] 633 ; P ; Columns=n BEL               the number of columns now: shells send it with a prompt

The sequences are those of ECMA-48, as xterm understands them. A line is longer than a row if the terminal has
wrapped it. Only the line itself is known here: `terminal_screen` moves between lines.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from overspill.reading.terminal_tokens import TOKEN, stated_columns, written_line

if TYPE_CHECKING:
    from overspill.reading.terminal_tokens import Token

_BACK: Final = re.compile(r"\r(?=[^\r])|[\x08\x1b]")
"""If a line has no match, nothing in it is written twice."""
_EDITED: Final = re.compile(r"\x08|\x1b\[[0-9;]*[@CDGPX]|\x1b7\x1b\[[0-9;]*[Hf]")
"""If a line has no match, the cursor only ever goes to the start."""
_NO_LINE_END_SIGN: Final = "⏎ "
_TAB: Final = 8
MAX_COLUMNS: Final = 1_000
"""The most columns of a row that are believed. A row of unknown width has so many."""
_ZERO_WIDTH: Final = frozenset({"Cc", "Cf", "Me", "Mn"})


def shown(line: str, columns: int) -> str:
    """Return a line of a terminal of so many `columns`, 0 if that is not known, as it shows it last.

    A line that says how many there are has so many. An output without a line end stays before the prompt of
    zsh or fish, with `⏎` between.
    """
    if _BACK.search(line) is None:
        return line
    stated = stated_columns(line)
    columns = columns if stated is None else stated
    written = written_line(line)
    before = [drawn for output in written.outputs if (drawn := Line(columns).draw(output))]
    return _NO_LINE_END_SIGN.join([*before, Line(columns).draw(written.last) + written.returns])


class Line:
    """A line on a screen: one cell for each column, in one row after another."""

    def __init__(self, columns: int) -> None:
        self._cells: list[str] = []
        self._cursor = 0
        self._columns = columns if columns <= MAX_COLUMNS else 0
        self._is_at_edge = False
        """Whether the last column is written, so that the next character wraps."""
        self._has_only_returns = False
        self._is_anew = False
        self._room = MAX_COLUMNS
        """The last position of a cell: moves over blanks lengthen a line to at most some times its bytes."""
        self._saved: int | None = None
        self._elsewhere: list[str] | None = None
        """The text drawn outside of the line, while the cursor is there."""

    @property
    def row(self) -> int:
        """The row of the line, from 0, in which the cursor is."""
        return (self._cursor - self._is_at_edge) // self._columns if self._columns else 0

    @property
    def rows(self) -> int:
        """The number of rows that the line takes."""
        return max(1, -(-len(self._cells) // self._columns)) if self._columns else 1

    @property
    def column(self) -> int:
        """The column in which the cursor is, from 0."""
        at = self._cursor - self._is_at_edge
        return at % self._columns if self._columns else at

    def go_to(self, row: int, column: int) -> None:
        """Put the cursor into a row and column of the line."""
        self._cursor, self._is_at_edge = row * self._columns + min(column, MAX_COLUMNS), False

    def cover(self, below: Line) -> None:
        """Take the place of a line of one row, which is below. What is behind the end of this line stays."""
        self._cells += below._cells[len(self._cells) - (self.rows - 1) * self._columns :]

    @property
    def is_drawn_elsewhere(self) -> bool:
        """Whether the cursor is outside of the line, until it is restored."""
        return self._saved is not None and self._elsewhere is not None

    def draw(self, text: str) -> str:
        """Write the text on the line, and return the line's text."""
        self._has_only_returns = _EDITED.search(text) is None
        for token in TOKEN.finditer(text):
            number, letter, cursor, control = token.groups()
            if move := control or letter or cursor:
                self._move(move, number or "")
            else:
                self._write(token[0])
        self._has_only_returns = False
        return self.text()

    def take(self, token: Token) -> None:
        """Write the token's text, or do its move in the line."""
        if token.move:
            self._move(token.move, token.number)
        else:
            self._write(token.text)

    def text(self) -> str:
        """Return the text of the line, without blanks at its end."""
        end = self._cursor if self._elsewhere is None else 0
        stop = len(self._cells)
        while stop > end and self._cells[stop - 1] == " ":
            stop -= 1
        return "".join([*self._cells[:stop], *(self._elsewhere or [])])

    def _write(self, text: str) -> None:
        cells = list(text) if text.isascii() and text.isprintable() else _cells(self._marked(text))
        if self._elsewhere is not None:
            self._elsewhere += cells
            self._cursor += len(cells)
            return
        if self._is_anew:
            del self._cells[self._cursor :]
        self._put(cells)
        self._room += 2 * len(cells)
        self._is_anew = False
        self._is_at_edge = bool(self._columns and cells and self._cursor % self._columns == 0)

    def _marked(self, text: str) -> str:
        """Return the text without marks at its beginning: those go to the character before the cursor."""
        at = min(self._cursor, len(self._cells)) - 1
        while at >= 0 and not self._cells[at]:
            at -= 1
        while at >= 0 and text and _is_mark(text[0]) and self._elsewhere is None:
            self._cells[at] += text[0]
            text = text[1:]
        return text

    def _put(self, cells: list[str]) -> None:
        self._pad(self._cursor)
        stop = self._cursor + len(cells)
        if cells:
            self._split(self._cursor)
            self._split(stop)
        self._cells[self._cursor : stop] = cells
        self._cursor = stop

    def _split(self, at: int) -> None:
        """Make blanks of a wide character or a tab that has this column, but does not begin there."""
        if self._cells[at : at + 1] != [""]:
            return
        start = stop = at
        while start and not self._cells[start]:
            start -= 1
        while stop < len(self._cells) and not self._cells[stop]:
            stop += 1
        self._cells[start:stop] = [" "] * (stop - start)

    def _move(self, move: str, number: str) -> None:
        amount = min(int(number or 0), MAX_COLUMNS)
        if self._is_at_edge:
            if move in "KJ" and not amount:
                return
            self._cursor, self._is_at_edge = self._cursor - 1, False
        if move in "78Hf":
            self._save(move)
        elif move in "ABEFMdhl":
            return
        elif move in "\rKJP@X" and self._elsewhere is not None:
            self._begin_elsewhere(move)
        elif move in "KJ":
            self._erase(move, amount)
        elif move in "P@X":
            self._change(move, amount or 1)
        elif move == "\r":
            self._return()
        else:
            self._go(move, amount or 1)

    def _return(self) -> None:
        r"""Go to the start of the row. Where nothing else moves, to that of the line: a bar begins anew.

        Shells write a blank and `\r` to go on in the next row, at the edge of this one.
        """
        start = self._row_start()
        is_wrapped = start > 0 and self._cursor == start + 1 == len(self._cells) and self._cells[start] == " "
        self._cursor = start if is_wrapped or not self._has_only_returns else 0
        self._is_anew = self._has_only_returns

    def _go(self, move: str, amount: int) -> None:
        start, at = self._row_start(), self._cursor
        last = min(start + (self._columns or len(self._cells) + MAX_COLUMNS) - 1, self._room)
        if move == "\t":
            self._tab(min(at + _TAB - (at - start) % _TAB, last))
        elif move in "\x08D":
            self._cursor = max(start, at - (1 if move == "\x08" else amount))
        elif move == "C":
            self._cursor = min(at + amount, last)
        else:
            self._cursor = min(start + amount - 1, last)

    def _tab(self, stop: int) -> None:
        """Go to the next stop. A tab behind all that is written is kept."""
        if self._elsewhere is not None:
            self._cursor = stop
            return
        if self._is_anew:
            del self._cells[self._cursor :]
            self._is_anew = False
        if self._cursor >= len(self._cells):
            self._pad(self._cursor)
            self._cells += ["\t", *[""] * (stop - self._cursor - 1)]
        self._cursor = max(stop, self._cursor)

    def _erase(self, move: str, amount: int) -> None:
        """Erase from the cursor on, up to it, or all: of the row (K), or of it and all below (J)."""
        is_to_end = move == "J" or not self._columns
        start, stop = self._cursor, len(self._cells) if is_to_end else self._row_stop()
        if amount == 1:
            start, stop = max(self._row_start(), self._cursor - MAX_COLUMNS), min(stop, self._cursor + 1)
        elif amount:
            start = 0 if move == "J" else self._row_start()
        if move == "J" and amount > 1:
            self._cursor = 0
        if stop == len(self._cells):
            del self._cells[start:]
        else:
            self._cells[start:stop] = [" "] * (stop - start)

    def _change(self, move: str, amount: int) -> None:
        start, stop = self._cursor, self._row_stop()
        if start >= stop:
            return
        row = self._cells[start:stop]
        blanks = [" "] * amount
        if move == "@":
            row = blanks + row
        elif move == "P":
            row = row[amount:] + (blanks if stop < len(self._cells) else [])
        else:
            row = blanks[: len(row)] + row[amount:]
        self._cells[start:stop] = row[: self._columns - (start - self._row_start())] if self._columns else row

    def _begin_elsewhere(self, move: str) -> None:
        """Begin the row outside of the line anew, if it is erased or returned to."""
        if move in "\rKJ":
            self._elsewhere = []
        if move == "\r":
            self._cursor = self._row_start()

    def _save(self, move: str) -> None:
        if move == "7":
            self._saved = self._cursor
        elif move == "8":
            self._cursor = self._cursor if self._saved is None else self._saved
            self._saved = self._elsewhere = None
        elif self._saved is not None:
            self._elsewhere = []

    def _pad(self, stop: int) -> None:
        self._cells += [" "] * (stop - len(self._cells))

    def _row_start(self) -> int:
        return self._cursor - self._cursor % self._columns if self._columns else 0

    def _row_stop(self) -> int:
        """Return where the row ends, or what was written in it; no more is changed of a long row."""
        stop = self._row_start() + self._columns if self._columns else self._cursor + MAX_COLUMNS
        return min(stop, len(self._cells))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in _ZERO_WIDTH


def _cells(text: str) -> list[str]:
    """Return what each column has: wide characters take two, marks and controls none."""
    cells: list[str] = []
    last = 0
    for character in text:
        if cells and _is_mark(character):
            cells[last] += character
            continue
        last = len(cells)
        cells.append(character)
        if unicodedata.east_asian_width(character) in "WF":
            cells.append("")
    return cells
