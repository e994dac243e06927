"""The tokens of a terminal's input: text, cursor moves, and a shell's marks about its lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MOVES: Final = re.compile(
    rb"\x1b(?:\[[0-9;]*[@-HJKPXdf]|\[\?(?:1049|1047|47)[hl]|[78M]"
    rb"|\]633;P;Columns=[0-9]{1,5}(?:\x07|\x1b\\))"
)
"""The sequences that are understood. Others must be removed before."""
TOKEN: Final = re.compile(
    r"\x1b(?:\[\??([0-9]*)[0-9;]*([@-HJKPXdfhl])|([78M]))|([\r\x08\t])|[^\x1b\r\x08\t]+"
)
"""The groups of a move are its number and letter, a cursor's short sequence, a control character."""
_LAST_RETURN: Final = re.compile(r"(?<!\r)(?<!\x1b\[[JK])(?<!\x1b\[[0-2][JK])\r(?:\r|\x1b\[[0-2]?[JK])*+\Z")
"""A return at the end, which overwrites nothing. A bar that it erases stays."""

# How zsh (`%` or `#`) and fish (`⏎`) say that an output has no line end: the sign, blanks up to the edge of
# the terminal, and back. A terminal goes on in its next row, so the prompt overwrites nothing.
_NO_LINE_END: Final = re.compile(r"(?:[%#] {8,}+\r \r|\u23ce {8,}+\r\u23ce \r)\r*")

_COLUMNS: Final = re.compile(r"\x1b\]633;P;Columns=([0-9]+)(?:\x07|\x1b\\)")


class Token(NamedTuple):
    """Text, or what the cursor does: the last letter of a sequence and its number, or a control character."""

    text: str
    move: str = ""
    number: str = ""


class WrittenLine(NamedTuple):
    """A line as it was written: what is drawn at its end, and the returns behind that."""

    outputs: list[str]
    """The outputs before it on the line, which have no line end."""
    last: str
    returns: str


def tokens(text: str) -> Iterator[Token]:
    """Yield the written texts and the cursor moves in their order."""
    for token in TOKEN.finditer(text):
        number, letter, cursor, control = token.groups()
        yield Token(token[0], control or cursor or letter or "", number or "")


def stated_columns(line: str) -> int | None:
    """Return the present number of columns, if the line says it."""
    numbers = _COLUMNS.findall(line)
    return int(numbers[-1]) if numbers else None


def written_line(line: str) -> WrittenLine:
    """Split a line into its outputs, its last text and its returns."""
    *outputs, last = _NO_LINE_END.split(_COLUMNS.sub("", line))
    end = _LAST_RETURN.search(last)
    if end is None:
        return WrittenLine(outputs, last, "")
    return WrittenLine(outputs, last[: end.start()], "\r" * end[0].count("\r"))
