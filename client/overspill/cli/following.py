"""Prints a capture's output as it comes, made safe for a terminal as all text of captures is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.cli import output
from overspill.cli.printable import printable
from overspill.reading.text import seam, strip_escapes

if TYPE_CHECKING:
    from overspill import wire
    from overspill.cli.invocation import Invocation

_MOST_HELD: Final = 64 * 1024


class FollowedText:
    r"""Removes the escape sequences of text that comes in pieces; a sequence may be cut by their borders.

    A `\r` at the end waits too: the next piece may begin with `\n`.
    """

    def __init__(self) -> None:
        self._held, self._return = b"", ""

    def feed(self, content: str, *, is_last: bool = False) -> str:
        """Return the text that can be shown."""
        data = self._held + content.encode()
        cut = len(data) if is_last else seam(data, len(data))
        if len(data) - cut > _MOST_HELD:
            cut = len(data)
        self._held = data[cut:]
        text = self._return + strip_escapes(data[:cut]).decode(errors="replace")
        self._return = "\r" if text.endswith("\r") and not is_last else ""
        return printable(text.removesuffix(self._return) if self._return else text)


def follow(invocation: Invocation, ref: str, session: str | None, *, lines: int | None) -> None:
    """Print the last `lines` lines and then what comes, until the capture ends. Raises as following does."""
    text = FollowedText()
    with invocation.client() as client, client.follow(ref, lines=lines, session=session) as events:
        for each in events:
            if invocation.json:
                invocation.answer(each)
            else:
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
