"""Prints a capture's output as it comes, made safe for a terminal as all text of captures is."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.printable import PrintableDecoder, printable
from overspill.cli.table import fitting
from overspill.reading.text import decode, seam, strip_escapes

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation

_MAX_HELD: Final = 64 * 1024
_LINE_END: Final = re.compile(r"\r*\n")
_ERASE: Final = "\r\x1b[K"


class FollowedText:
    """Removes the escape sequences of text that comes in pieces; a sequence may be cut by their borders."""

    def __init__(self) -> None:
        self._held, self._decoder = b"", PrintableDecoder()

    def feed(self, content: str, *, is_last: bool = False) -> str:
        """Return the text that can be shown."""
        data = self._held + content.encode()
        cut = len(data) if is_last else seam(data, len(data))
        if len(data) - cut > _MAX_HELD:
            cut = len(data)
        self._held = data[cut:]
        return self._decoder.feed(strip_escapes(data[:cut]), last=is_last)


class FollowedTerminal:
    """Shows each line as a terminal of this many `columns` showed it in the end.

    The last line, which may still change, is drawn again and again if `is_drawn`; else it waits for its end.
    """

    def __init__(self, columns: int, *, is_drawn: bool) -> None:
        self._columns, self._is_drawn = columns, is_drawn
        self._held, self._drawn = b"", ""

    def feed(self, content: str, *, is_last: bool = False) -> str:
        """Return the text that can be shown, whose beginning erases what was drawn before."""
        data = self._held + content.encode()
        cut = len(data) if is_last or len(data) > _MAX_HELD else data.rfind(b"\n") + 1
        self._held = data[cut:]
        whole, erased = self._shown(data[:cut]), _ERASE if self._drawn else ""
        drawn = self._shown(self._held.rstrip(b"\r")).rpartition("\n")[2] if self._is_drawn else ""
        self._drawn = fitting(drawn, 1)
        return erased + whole + self._drawn

    def _shown(self, data: bytes) -> str:
        return printable(_LINE_END.sub("\n", decode(data, columns=self._columns).text))


def _text_of(entry: wire.Entry) -> FollowedText | FollowedTerminal:
    columns = wire.terminal_columns(entry.labels)
    if columns is None:
        return FollowedText()
    return FollowedTerminal(columns, is_drawn=output.is_terminal() and os.environ.get("TERM") != "dumb")


def follow(invocation: Invocation, ref: str, session: str | None, *, lines: int | None) -> None:
    """Print the last `lines` lines and then what comes, until the capture ends. Raises as following does."""
    with invocation.client() as client, client.follow(ref, lines=lines, session=session) as events:
        text = _text_of(client.get(ref, session=session))
        for each in events:
            if not invocation.answered(each):
                output.text(each.content if invocation.raw else text.feed(each.content), raw=True)
            output.flush()
        end = events.end
    if not invocation.json:
        output.text(text.feed("", is_last=True), raw=True)
    if end is not None:
        output.say(_end_line(ref, end))


def _end_line(ref: str, end: wire.FollowedEnd) -> str:
    code = "" if end.exit_code is None else f", exit code {end.exit_code}"
    status = f", {end.status}" if end.status and end.exit_code is None else ""
    gap = "" if end.gap is None else f". {end.gap}"
    return f"{ref} has ended: {end.state}{status}{code}{gap}"
