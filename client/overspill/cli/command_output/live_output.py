"""Shows a command's output as it comes. If the screen is gone, the command goes on."""

from __future__ import annotations

import sys
from typing import BinaryIO, Self

from overspill.cli import output
from overspill.cli.printable import PrintableDecoder


class LiveOutput:
    """Shows bytes on a stream as they come, made printable on a terminal unless `raw`."""

    def __init__(self, stream: BinaryIO | None, *, is_terminal: bool, raw: bool) -> None:
        self._stream = stream
        self._visible = PrintableDecoder() if is_terminal and not raw else None
        self._is_terminal = is_terminal
        self._ends_line = True
        self.is_standard_output: bool = stream is not None and stream is output.stream()

    @classmethod
    def where_wanted(cls, *, wanted: bool | None, raw: bool) -> Self | None:
        """Show on standard output if that is a terminal. Elsewhere show on standard error, if `wanted`."""
        if wanted is False or not (wanted or output.is_terminal()):
            return None
        if output.is_terminal():
            return cls(output.stream(), is_terminal=True, raw=raw)
        stderr = sys.stderr
        is_terminal = stderr is not None and stderr.isatty()
        return cls(None if stderr is None else stderr.buffer, is_terminal=is_terminal, raw=raw)

    def show(self, data: bytes) -> None:
        """Show more of the output. Never raises: if the screen is gone, nothing is shown."""
        shown = data if self._visible is None else self._visible.feed(data).encode()
        self._write(shown)

    def end(self) -> None:
        """Show the bytes that were held back. On a terminal, end the last line."""
        if self._visible is not None:
            self._write(self._visible.feed(b"", last=True).encode())
        if self._is_terminal and not self._ends_line:
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        if self._stream is None or not data:
            return
        self._ends_line = data.endswith(b"\n")
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError):  # hung up, or closed
            if self.is_standard_output:
                output.abandon()
            self._stream = None
