r"""Reads an asciicast recording of version 3 or 2, as it comes, into what the terminal showed.

    {"version": 3, "term": {"cols": 80, "rows": 24}, "command": "make", …}     the header
    [0.25, "o", "compiling…\r\n"]                                              an event: interval, code, data
    [1.5, "x", "2"]                                                            the exit code

In version 2 the size is `width` and `height`, and an event has its time instead of an interval. Events of
other codes are left out, because typed text may be a password. From the first line on that is none of these,
everything is taken as it came, so that nothing is lost.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

V2: Final = 2
V3: Final = 3
MAX_LINE: Final = 16 * 1024 * 1024
"""The most bytes of a line."""


class _Term(Struct):
    """The terminal of a recording, in columns and rows."""

    cols: int = 80
    rows: int = 24


class CastHeader(Struct):
    """The header of a recording. `width` and `height` are those of version 2."""

    version: int
    term: _Term = msgspec.field(default_factory=_Term)
    width: int = 80
    height: int = 24
    command: str | None = None
    title: str | None = None

    @property
    def size(self) -> str:
        """Columns and rows, as `80x24`."""
        if self.version == V2:
            return f"{self.width}x{self.height}"
        return f"{self.term.cols}x{self.term.rows}"


_EXIT_CODE: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_header: Final = msgspec.json.Decoder(CastHeader)
_event: Final = msgspec.json.Decoder(tuple[float, str, Any])


class CastReader:
    """Reads a recording from pieces of any size, and returns what the terminal showed.

    `problem` says from which line on the bytes are not a recording. It is empty if they are one.
    """

    def __init__(self) -> None:
        self.header: CastHeader | None = None
        self.exit_code: int | None = None
        self.problem: str = ""
        self._rest = bytearray()
        self._lines = 0
        self._time = 0.0

    @property
    def has_begun(self) -> bool:
        """Whether the header was read, or is known to be missing."""
        return self.header is not None or bool(self.problem)

    def feed(self, data: bytes) -> bytes:
        """Read a piece, and return what the terminal shows for it."""
        if self.problem:
            return data
        self._rest += data
        if b"\n" not in data and len(self._rest) <= MAX_LINE:
            return b""
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest.clear()
        shown = b"".join(self._shown_bytes(line) for line in lines)
        if not self.problem and len(rest) > MAX_LINE:
            self.problem = f"line {self._lines + 1}: more than {MAX_LINE} bytes"
        if self.problem:
            return shown + rest
        self._rest += rest
        return shown

    def finish(self) -> bytes:
        """Return what the last line shows, which may have no end."""
        last = bytes(self._rest)
        self._rest.clear()
        shown = self._shown_bytes(last) if last else b""
        if not self.has_begun:
            self.problem = "there is no header: the recording is empty"
        return last if self.problem and last else shown

    def _shown_bytes(self, line: bytes) -> bytes:
        """Return what a line shows. It shows itself if it, or one before it, is not a line of a recording."""
        if not self.problem:
            self._lines += 1
            try:
                return self._take_line(line)
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                self.problem = f"line {self._lines}: {error}"
        return line + b"\n"

    def _take_line(self, line: bytes) -> bytes:
        """Take a line of the recording. Raises `ValueError`, `msgspec.DecodeError`, `RecursionError`."""
        is_comment = line.startswith(b"#") and self.header is not None
        if is_comment or not line.strip():
            return b""
        if self.header is not None:
            return self._event(self.header, line)
        header = _header.decode(line)
        if header.version not in {V2, V3}:
            raise ValueError(f"version {header.version} is not read, only 2 and 3 are")
        self.header = header
        return b""

    def _event(self, header: CastHeader, line: bytes) -> bytes:
        time, code, data = _event.decode(line)
        if time < 0 or (header.version == V2 and time < self._time):
            raise ValueError(f"the time goes back to {time:g}")
        self._time = time
        if code == "o" and isinstance(data, str):
            return data.encode()
        if code == "x" and isinstance(data, str) and _EXIT_CODE.fullmatch(data):
            self.exit_code = int(data)
        return b""
