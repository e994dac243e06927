r"""Finds the commands in the output of a shell's terminal, by the marks of its integration.

    ESC ] 133 ; A BEL          a prompt begins (B: it ends)
    ESC ] 133 ; C BEL          the command's output begins
    ESC ] 133 ; D [; code] BEL it has ended
    ESC ] 633 ; E ; line BEL   the command line, with `\\` and `\x3b` escaped

The marks are FinalTerm's (133) and those of VS Code's shell integration (633), which has the same letters.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, structs

LONGEST_MARK: Final = 8_192
"""The most bytes of a mark. A longer text is no mark."""
MAX_SECTIONS: Final = 10_000
_MARK: Final = re.compile(rb"\x1b\](?:133|633);([A-E])(?:;([^\x07\x1b]{0,8192}))?(?:\x07|\x1b\\)")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|\\)")
_UNSEEN: Final = re.compile(
    rb"\x1b\[[\x20-\x3f]*[\x40-\x7e]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\x20-\x2f]*[\x30-\x7e]|[\0-\x20]"
)
"""Control sequences (CSI, OSC, short ones), control characters and blanks: nothing that a person sees."""
_UNFINISHED: Final = re.compile(
    rb"\x1b(?:\[[\x20-\x3f]{0,64}|\][^\x07\x1b]{0,8192}\x1b?|[\x20-\x2f]{1,8})?\Z"
)
_LONGEST_LINE: Final = 1_000
_EXIT_CODE: Final = re.compile(r"-?[0-9]{1,10}")


class Section(Struct, frozen=True, kw_only=True):
    """One command: its output is lines `start` to `end`, from 1. `exit_code` is None if it is unknown."""

    command: str
    start: int
    end: int | None = None
    exit_code: int | None = None


class ShellMarks:
    """Reads a terminal's bytes in pieces. `sections` has the commands so far, the last 10,000 of them."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._pending = b""
        self._line = 1
        self._is_line_begun = False
        self._command = ""
        self._is_open = False

    def feed(self, data: bytes) -> None:
        """Take a piece. A mark that it cuts waits for the next one."""
        data = self._pending + data
        at = 0
        for match in _MARK.finditer(data):
            self._count(data[at : match.start()])
            self._take(match[1], (match[2] or b"").decode("utf-8", "replace"))
            at = match.end()
        unfinished = _UNFINISHED.search(data, max(at, len(data) - LONGEST_MARK))
        cut = len(data) if unfinished is None else unfinished.start()
        self._count(data[at:cut])
        self._pending = data[cut:]

    def _count(self, text: bytes) -> None:
        _, end, last = text.rpartition(b"\n")
        self._line += text.count(b"\n")
        is_seen = bool(_UNSEEN.sub(b"", last))
        self._is_line_begun = is_seen or (self._is_line_begun and not end)

    def _take(self, letter: bytes, value: str) -> None:
        if letter == b"E":
            self._command = _unescaped(value.partition(";")[0])[:_LONGEST_LINE]
        elif letter == b"C":
            self._begin()
        elif letter == b"D":
            self._end(value)

    def _begin(self) -> None:
        """Begin a section, unless a second integration of the shell only marks the last one again."""
        command, self._command = self._command, ""
        if self._is_open and not self._is_line_begun and self.sections[-1].start == self._line:
            known = self.sections.pop().command
            command = command or known
        self.sections.append(Section(command=command, start=self._line))
        del self.sections[:-MAX_SECTIONS]
        self._is_open, self._is_line_begun = True, False

    def _end(self, value: str) -> None:
        if not self._is_open:
            return
        code = value.partition(";")[0]
        last = self._line if self._is_line_begun else self._line - 1
        self.sections[-1] = structs.replace(
            self.sections[-1],
            end=max(last, self.sections[-1].start - 1),
            exit_code=int(code) if _EXIT_CODE.fullmatch(code) else None,
        )
        self._is_open = False


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: "\\" if match[1] == "\\" else chr(int(match[1][1:], 16)), text)
