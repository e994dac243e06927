"""Stores a command's output while it runs, from its recording: the service never makes the command wait.

A short output of a quick command is not stored at all. The capture begins once the output is longer than
what would be printed, or once the command has run for a while.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from overspill.errors import OverspillError

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill import wire
    from overspill.agent_tools.recording import Recording
    from overspill.live.sync_capture import SyncLiveCapture

AFTER_SECONDS: Final = 2.0
"""A command that runs for so long gets a live capture as soon as it prints anything."""
PATIENCE_SECONDS: Final = 10.0
"""So long the service may take nothing, before the output is stored at the end of the command instead."""
_READ_BYTES: Final = 1024 * 1024


class LiveUpload:
    """Copies a recording into a live capture, in a thread of its own, in a `with` block."""

    def __init__(
        self,
        recording: Recording,
        new_capture: Callable[[], SyncLiveCapture],
        *,
        after_bytes: int,
        after_seconds: float = AFTER_SECONDS,
    ) -> None:
        self._recording, self._new_capture = recording, new_capture
        self._after_bytes, self._after_seconds = after_bytes, after_seconds
        self._news = threading.Condition()
        self._size = 0
        self._is_over = self._is_dropped = False
        self._outcome: dict[str, Any] = {}
        self._entry: wire.Entry | None = None
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="overspill-live", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_dropped = True
        self._end()

    def take(self, data: bytes) -> None:
        """Note that more of the output was recorded. The thread begins with the first of it."""
        if not self._size and data:
            with suppress(RuntimeError):  # no thread can be started: the output is stored at the end
                self._thread.start()
        with self._news:
            self._size += len(data)
            self._news.notify()

    def ended(self, *, status: str, exit_code: int) -> wire.Entry | None:
        """Store the rest, and return the entry. None: nothing was begun, or it could not be stored whole."""
        self._outcome = {"status": status, "exit_code": exit_code}
        self._end()
        return self._entry

    def _end(self) -> None:
        with self._news:
            self._is_over = True
            self._news.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _serve(self) -> None:
        if not self._is_due():
            return
        try:
            capture = self._new_capture()
            capture.start()
            self._copy(capture)
            if self._is_dropped or self._recording.missing:
                capture.abort()
            else:
                self._entry = capture.complete(**self._outcome)
        except (
            OverspillError,
            OSError,
            RuntimeError,
        ):  # the guard stores the output at the end, and says why not
            self._entry = None

    def _is_due(self) -> bool:
        """Wait until a capture is to begin; return False if the command has ended before."""
        with self._news:
            left = self._began + self._after_seconds - time.monotonic()
            self._news.wait_for(lambda: self._is_over or self._size > self._after_bytes, max(0.0, left))
            return not self._is_over or self._size > self._after_bytes

    def _copy(self, capture: SyncLiveCapture) -> None:
        """Write all of the recording as it grows. Raises what writing raises."""
        offset = 0
        while not self._is_dropped:
            with self._news:
                self._news.wait_for(lambda: self._is_over or self._size > offset)  # noqa: B023  (called here)
                is_last = self._is_over and self._size <= offset
            if is_last or self._recording.missing:
                return
            data = self._recording.read(offset, _READ_BYTES)
            if not data:
                return
            capture.write(data)
            offset += len(data)
