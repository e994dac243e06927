"""The whole terminal for one program: the alternate screen, single keys, and everything as it was afterwards.

The escape sequences are those that every terminal emulator knows: DEC private modes 7 (wrapping), 25 (the
cursor) and 1049 (the alternate screen).
"""

from __future__ import annotations

import errno
import os
import re
import sys
import termios
import tty
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from overspill.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE: Final = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
_TOP: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[2K"
"""It comes before a line: after one that fills the screen's width it would take the last character."""
_USUAL: Final = (80, 24)
"""Columns and lines of a terminal that does not say them."""
_KEY_BYTES: Final = 1024
_KEYS: Final = re.compile(rb"\x1b[\[O]([0-9;]*[A-Za-z~])|([ -~])")
"""The end of a key's escape sequence, or a character."""
_NAMES: Final = {
    b"A": "up",
    b"B": "down",
    b"C": "right",
    b"D": "left",
    b"F": "end",
    b"H": "home",
    b"5~": "page up",
    b"6~": "page down",
}


def is_possible() -> bool:
    """Return whether standard output is a terminal that can show more than lines."""
    return output.is_terminal() and os.environ.get("TERM", "dumb") not in ("", "dumb")


class Screen:
    """The terminal, within a `with` block. Its keys come without Enter, and are not shown.

    Without a terminal as standard input there are no keys.
    """

    def __init__(self) -> None:
        self.keyboard: int | None = None
        """The descriptor from which keys come."""
        if sys.stdin is not None and sys.stdin.isatty():
            self.keyboard = sys.stdin.fileno()
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Take the terminal. Raises `OSError`."""
        if self.keyboard is not None:
            self._before = termios.tcgetattr(self.keyboard)
            tty.setcbreak(self.keyboard)
        output.write(_ENTER)
        output.flush()

    def close(self) -> None:
        """Give the terminal back as it was."""
        with suppress(OSError, ValueError):  # the terminal is gone
            output.write(_LEAVE)
            output.flush()
        if self.keyboard is not None and self._before is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(self.keyboard, termios.TCSAFLUSH, self._before)

    def size(self) -> tuple[int, int]:
        """Return the columns and lines that there are now."""
        width, height = os.get_terminal_size(output.stream().fileno())
        return width or _USUAL[0], height or _USUAL[1]

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, one for each of the screen, in one write. Raises `OSError`."""
        shown = "\r\n".join(_CLEAR_LINE + line for line in lines)
        output.write(f"{_TOP}{shown}".encode("utf-8", "backslashreplace"))
        output.flush()

    def keys(self) -> Iterator[str]:
        """Yield the keys that were pressed: a character, or a name such as `up`. Others are left out.

        Raises `OSError` if the terminal is gone.
        """
        assert self.keyboard is not None
        pressed = os.read(self.keyboard, _KEY_BYTES)
        if not pressed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        for sequence, character in _KEYS.findall(pressed):
            yield _NAMES.get(sequence, "") or character.decode()
