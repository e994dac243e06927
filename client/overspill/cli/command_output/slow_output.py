"""Shows an agent the output of a command that takes long, as it comes and as long as it is short.

A server says that it is ready and runs on; a program asks, and waits for an answer. Nothing is shown of a
command that soon ends: then the whole output is printed, or its notice alone.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.cli import output

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from overspill.text.limits import Limits

_BEGINS_AFTER_SECONDS: Final = 1.0
_SHOWN_BYTES: Final = 4_096
_SHOWN_LINES: Final = 100
"""The most bytes and lines that are shown. If the output gets long, its notice may show them again."""


class SlowOutput:
    """Takes bytes as they come, within the limits; with limits of 0 none. Use it in a `with` block."""

    def __init__(self, limits: Limits, goes_on: str) -> None:
        """`goes_on` is the last line that is shown before the end, if there is more."""
        self.shown_bytes: int = 0
        self._ends_line = True
        self._bytes_left = min(limits.max_bytes, _SHOWN_BYTES)
        self._lines_left = min(limits.max_lines, _SHOWN_LINES)
        self._goes_on = goes_on
        self._held = bytearray()
        self._is_slow = self._is_full = False
        self._is_over = self._bytes_left <= 0
        self._lock = threading.Lock()
        self._timer = threading.Timer(_BEGINS_AFTER_SECONDS, self._begin)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if not self._is_over:
            with suppress(RuntimeError):  # no thread can be started: all is shown at the end
                self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True

    def take(self, data: bytes) -> None:
        """Take more of the output. Never raises: bytes that cannot be shown are skipped."""
        with self._lock:
            if self._is_over or self._is_full:
                return
            if len(data) > self._bytes_left or data.count(b"\n") > self._lines_left:
                data = data[: data.rfind(b"\n", 0, self._bytes_left) + 1]
                data = b"".join(data.splitlines(keepends=True)[: self._lines_left])
                self._is_full = True
            self._held += data
            self._bytes_left -= len(data)
            self._lines_left -= data.count(b"\n")
            if self._is_slow:
                self._show()

    def end_line(self) -> None:
        """End the line, so that the next text begins a line. Raises `OSError`."""
        if not self._ends_line:
            output.line("")

    def _begin(self) -> None:
        with self._lock:
            self._is_slow = True
            if not self._is_over:
                self._show()

    def _show(self) -> None:
        """Show the held output, and where the rest is."""
        self._write(bytes(self._held))
        self.shown_bytes += len(self._held)
        self._held.clear()
        if self._is_full:
            start = b"" if self._ends_line else b"\n"
            self._write(start + f"{self._goes_on}\n".encode())

    def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            output.write(data)
            output.flush()
        except OSError:  # whoever reads is gone: the end of the command says so
            self._is_over = True
        self._ends_line = data.endswith(b"\n")
