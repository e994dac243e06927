r"""The screen of a terminal, drawn from its output. Lines may be rewritten after others began below them.

    ESC M  CSI n A  CSI n F      up         CSI r;c H  CSI r d         to a row, as full-screen programs
    \n     CSI n B  CSI n E      down       CSI ? 1049 h … l           a screen of their own, for a time

Bars of several rows go up and draw themselves again; shells do so while a command of several rows is edited.
The number of the screen's rows is not known, so the cursor goes up at most `MAX_ROWS`. Cleared text stays
above new text, as terminals keep it in their history. If a program uses a screen of its own, the text of that
screen disappears with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.terminal_line import MAX_COLUMNS, Line, shown
from overspill.reading.terminal_tokens import stated_columns, tokens, written_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.reading.terminal_tokens import Token

MAX_ROWS: Final = 100
"""The number of rows that a screen is assumed to have."""
_ACROSS: Final = re.compile(r"\x1b(?:M|\[[0-9;]*[ABEFHdf]|\[\?)")
"""If a line has no match, the cursor stays in the line."""
_BACK: Final = re.compile(r"\r(?=[^\r\n])|[\x08\x1b]")
"""If a text has no match, nothing in it is written twice."""
_ADDRESS: Final = re.compile(r"\x1b\[([0-9]{0,4})(?:;([0-9]{0,4}))?")


class ShownText(NamedTuple):
    """The text on a terminal. `numbers` has the line, from 0, in which each of its lines was begun."""

    text: str
    numbers: Sequence[int]


def shown_text(text: str, columns: int) -> ShownText:
    """Return the lines of a terminal of so many `columns`, 0 if that is not known, as it shows them last.

    They are the lines of `text` if the cursor stays in each of them. What is drawn above the first line comes
    before it.
    """
    if _BACK.search(text) is None:
        return ShownText(text, range(text.count("\n") + (bool(text) and not text.endswith("\n"))))
    lines = text.split("\n")
    if _ACROSS.search(text) is None:
        numbers = range(len(lines) - (not lines[-1]))
        return ShownText("\n".join(shown(line, columns) for line in lines), numbers)
    screen = _Screen(columns)
    for number, line in enumerate(lines[:-1]):
        screen.draw(number, line)
        screen.end_line()
    if lines[-1]:
        screen.draw(len(lines) - 1, lines[-1])
    shown_lines = screen.lines(is_ended=not lines[-1])
    drawn = "\n".join(each.text for each in shown_lines)
    return ShownText(drawn if lines[-1] else drawn + "\n", [each.number for each in shown_lines])


class _ScreenLine:
    """A line, and the number of the one in which it was begun. It is drawn once the cursor comes to it."""

    def __init__(self, number: int, columns: int, written: str) -> None:
        self.number, self._columns, self._written = number, columns, written
        self._line: Line | None = None
        self.returns = ""
        self.has_cursor = False

    @property
    def text(self) -> str:
        if self._line is None:
            return self._written
        text = self._line.text()
        return (text if self.has_cursor else text.rstrip(" ")) + self.returns

    @property
    def rows(self) -> int:
        if self._line is None and (not self._columns or len(self._written) < self._columns):
            return 1
        return self.line.rows

    @property
    def line(self) -> Line:
        if self._line is None:
            self._line = Line(self._columns)
            self._line.draw(self._written.rstrip("\r"))
        return self._line


class _Screen:
    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._lines: list[_ScreenLine] = []
        self._cursor_index: int | None = None
        """The line of the cursor; None before the line that is begun next."""
        self._number = 0
        self._above = 0
        """How many lines there are above the first that was begun here."""
        self._top: int | None = None
        """The line at the top of the screen, once a program has gone there."""
        self._saved: _ScreenLine | None = None
        self._main: list[_ScreenLine] | None = None
        """The lines of the usual screen, while a program has one of its own."""
        self._main_index = 0

    def lines(self, *, is_ended: bool) -> list[_ScreenLine]:
        """Return the lines that are shown in the end; `is_ended` leaves out a blank one that only waits."""
        lines = [*(self._main or []), *self._lines]
        if self._cursor_index is not None and not is_ended:
            self._current.has_cursor = True
        if is_ended and self._cursor_index == len(self._lines) - 1 and not lines[-1].text:
            lines.pop()
        while len(lines) > 1 and self._above and not lines[0].text:
            lines, self._above = lines[1:], self._above - 1
        return lines

    def draw(self, number: int, written: str) -> None:
        """Draw a line without its end."""
        self._number = number
        if (stated := stated_columns(written)) is not None:
            self._columns = stated
        if self._cursor_index is None and _ACROSS.search(written) is None:
            self._lines.append(self._new(number, shown(written, self._columns)))
            return
        line = written_line(written)
        if self._cursor_index is None:
            outputs = [output for each in line.outputs if (output := shown(each, self._columns))]
            self._lines += [self._new(number, output) for output in outputs]
            self._begin()
        for token in tokens(line.last):
            self._take(token)
        self._current.returns = line.returns

    def end_line(self) -> None:
        """Go to the start of the next row; at the last one a line is begun."""
        if self._cursor_index is None:
            return
        if self._line.row + 1 < self._line.rows:
            self._line.go_to(self._line.row + 1, 0)
        elif self._cursor_index + 1 < len(self._lines):
            self._cursor_index += 1
            self._line.go_to(0, 0)
        else:
            self._cursor_index = None

    @property
    def _current(self) -> _ScreenLine:
        return self._lines[self._index]

    @property
    def _index(self) -> int:
        assert self._cursor_index is not None
        return self._cursor_index

    @property
    def _highest(self) -> int:
        """The highest line that is still on the screen."""
        return max(self._top or 0, len(self._lines) - MAX_ROWS)

    @property
    def _line(self) -> Line:
        return self._current.line

    def _new(self, number: int, written: str = "") -> _ScreenLine:
        return _ScreenLine(number, self._columns, written)

    def _begin(self) -> None:
        self._lines.append(self._new(self._number))
        self._cursor_index = len(self._lines) - 1

    def _begin_page(self) -> None:
        """Let the screen begin below all that is written."""
        if not self._lines or self._lines[-1].text:
            self._begin()
        self._cursor_index = self._top = len(self._lines) - 1
        self._line.go_to(0, 0)

    def _take(self, token: Token) -> None:
        move, is_away = token.move, self._line.is_drawn_elsewhere
        amount = min(int(token.number or 1), MAX_ROWS)
        if move in ("h", "l"):
            self._switch(is_own=move == "h")
        elif move and move in "AMF" and not is_away:
            self._go_up(amount, move)
        elif move and move in "BE" and not is_away:
            self._go_down(amount, move)
        elif move and move in "Hfd" and self._saved is None:
            self._address(token)
        elif move == "J" and not is_away:
            self._erase(token)
        else:
            self._save(move)
            self._write(token)

    def _write(self, token: Token) -> None:
        """Write on the line. The rows that it takes more are those of the lines below it."""
        line = self._line
        rows = line.rows
        line.take(token)
        taken, below = line.rows - rows, self._index + 1
        while taken > 0 and below < len(self._lines) and self._lines[below].rows <= taken:
            covered = self._lines.pop(below)
            taken -= covered.rows
            line.cover(covered.line)

    def _save(self, move: str) -> None:
        if move == "7":
            self._saved = self._current
        elif move == "8" and self._saved is not None:
            highest = self._highest
            if self._saved in self._lines[highest:]:
                self._cursor_index = self._lines.index(self._saved, highest)
            self._saved = None

    def _go_up(self, rows: int, move: str) -> None:
        column = 0 if move == "F" else self._line.column
        at, row = self._index, self._line.row
        if move == "M" and at == self._top and not row:
            self._lines.insert(at, self._new(self._lines[at].number))
            return
        highest = self._highest
        while rows > row and at > highest:
            at, rows = at - 1, rows - row - 1
            row = self._lines[at].rows - 1
        above = min(rows - row, MAX_ROWS - len(self._lines)) if self._top is None else 0
        if not at and above > 0:
            self._above += above
            self._lines[:0] = [self._new(0) for _ in range(above)]
            row = rows = 0
        self._cursor_index = at
        self._line.go_to(max(0, row - rows), column)

    def _go_down(self, rows: int, move: str) -> None:
        column = 0 if move == "E" else self._line.column
        at, row = self._index, self._line.row + rows
        while row >= self._lines[at].rows and at + 1 < len(self._lines):
            at, row = at + 1, row - self._lines[at].rows
        below = row + 1 - self._lines[at].rows
        if below > 0 and self._top is not None:
            below = min(below, self._top + MAX_ROWS - len(self._lines))
            self._lines += [self._new(self._number) for _ in range(below)]
            at, row = len(self._lines) - 1, 0
        self._cursor_index = at
        self._line.go_to(min(row, self._line.rows - 1), column)

    def _address(self, token: Token) -> None:
        """Go to a row of the screen, and with H and f to a column too."""
        address = _ADDRESS.match(token.text)
        assert address is not None
        row, column = (min(int(number or 1), MAX_COLUMNS) or 1 for number in address.groups())
        column = self._line.column if token.move == "d" else column - 1
        if self._top is None:
            self._begin_page()
        self._cursor_index = self._highest
        self._line.go_to(0, column)
        self._go_down(min(row, MAX_ROWS) - 1, "B")

    def _erase(self, token: Token) -> None:
        """Erase everything below the cursor, or all. Text that is cleared on the usual screen stays above."""
        is_at_top = self._cursor_index == self._top and not self._line.row and not self._line.column
        if self._top is None or not (token.number in {"2", "3"} or (is_at_top and token.number != "1")):
            if token.number in {"", "0"}:
                del self._lines[self._index + 1 :]
            self._line.take(token)
            return
        if self._main is not None or not any(line.text for line in self._lines[self._top :]):
            del self._lines[self._top :]
            self._begin()
        else:
            self._begin_page()

    def _switch(self, *, is_own: bool) -> None:
        """Begin a screen of a program's own, or end it."""
        if is_own == (self._main is not None):
            return
        self._saved = None
        if is_own:
            self._main, self._main_index, self._lines = self._lines, self._index, []
            self._begin_page()
        elif self._main is not None:
            self._lines, self._cursor_index, self._main, self._top = self._main, self._main_index, None, None
