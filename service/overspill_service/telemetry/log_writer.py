"""Writes the log. A thread writes the lines of requests, several at a time. Other lines are written at once.

So a request waits neither for the system nor for a slow reader of the log. All lines that wait are written,
in their order, before any other line and at the end of the process. While the reader takes nothing, the lines
of requests wait in memory. If too many wait, further ones are lost, and counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service.telemetry.log_lines import RequestRecord

if TYPE_CHECKING:
    from typing import Any, TextIO

    from overspill_service.telemetry.log_lines import LineFormatter

MAX_WAITING: Final = 10_000
"""Lines of requests that wait to be written, at most."""
PAUSE_SECONDS: Final = 0.02
"""How long lines are collected before the next ones are written."""
PIECE_BYTES: Final = 4096
"""The most bytes that are written at once, unless one line is longer. A pipe keeps this many together, even
if others write to it (PIPE_BUF).
"""


class LogWriter(logging.Handler):
    def __init__(self, stream: TextIO, lines: LineFormatter) -> None:
        super().__init__()
        self.setFormatter(lines)
        self._stream, self._lines = stream, lines
        self._waiting: deque[str] = deque()
        self._lost = 0
        self._writing = threading.RLock()
        self._has_lines = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if isinstance(record, RequestRecord):
            self._put(line)
        else:
            with self._writing:
                self._write_waiting()
                self._write(line + "\n")

    def write_request(self, logger: str, message: str, fields: dict[str, Any]) -> None:
        """Write the line of a request without a record, which would cost more than the line."""
        self._put(self._lines.line(time.time(), "INFO", logger, message, self._lines.fields(fields)))

    def flush(self) -> None:
        """Write the waiting lines."""
        with self._writing:
            self._write_waiting()

    def close(self) -> None:
        """Write the waiting lines, and end the thread."""
        self.flush()
        self._is_closed = True
        self._has_lines.set()
        super().close()

    def _put(self, line: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._lost += 1
            return
        self._waiting.append(line)
        if not self._has_lines.is_set():
            self._has_lines.set()
            if self._thread is None:
                self._begin()

    def _begin(self) -> None:
        """Start the thread. If the system has none left, lines wait until another kind of line comes."""
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        with suppress(RuntimeError):
            self._thread.start()

    def _run(self) -> None:
        while not self._is_closed:
            self._has_lines.wait()
            self._has_lines.clear()
            self.flush()
            time.sleep(PAUSE_SECONDS)

    def _write_waiting(self) -> None:
        while self._waiting:
            self._write(self._piece())
        if self._lost:
            lost, self._lost = self._lost, 0
            self._write(self.format(_lost_lines(lost)) + "\n")

    def _piece(self) -> str:
        """Return the next lines that wait, as many as are written at once."""
        lines, size = list[str](), 0
        while self._waiting:
            line = self._waiting[0]
            size += 1 + (len(line) if line.isascii() else 4 * len(line))
            if lines and size > PIECE_BYTES:
                break
            lines.append(self._waiting.popleft())
        lines.append("")
        return "\n".join(lines)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads the log any more: no request fails for that
            self._lost += text.count("\n")


def _lost_lines(count: int) -> logging.LogRecord:
    text = "%d lines of requests were not written: the log was not read in time"
    return logging.LogRecord(__name__, logging.WARNING, "", 0, text, (count,), None)
