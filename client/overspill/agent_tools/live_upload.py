"""Stores a command's output while it runs. It reads a recording, so the service never makes the command wait.

    command ──▶ LiveUpload ──▶ Recording ──▶ live capture: masked once ──▶ service
                                                                      └──▶ copy, of which the notice is made

A short output of a quick command is not stored at all. The capture begins once the output is longer than
what would be printed, or once the command has run for a while.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from overspill.errors import OverspillError
from overspill.errors.client_errors import NotSpooled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from overspill import wire
    from overspill.agent_tools.recording import Recording
    from overspill.live.ports import Beginning
    from overspill.live.sync_capture import SyncLiveCapture

AFTER_SECONDS: Final = 2.0
"""A command that has run for this long gets a live capture as soon as it prints anything."""
PATIENCE_SECONDS: Final = 10.0
"""Seconds for which the service may take nothing. After that, the output is stored at the command's end."""
PACE_SECONDS: Final = 0.02
"""Seconds for which small pieces are gathered. The first one after a pause goes at once."""
_READ_BYTES: Final = 256 * 1024
_FAILURES: Final = (OverspillError, NotSpooled, OSError, RuntimeError, ImportError)
"""The errors that storing may raise. `ImportError` comes if the command replaces or removes this package."""


class LiveUpload:
    """Records an output, and copies it into a live capture, in a thread of its own, in a `with` block.

    Without a `new_capture` it only records.
    """

    def __init__(
        self,
        recording: Recording,
        new_capture: Callable[[], SyncLiveCapture] | None,
        *,
        after_bytes: int,
        after_seconds: float = AFTER_SECONDS,
        least_bytes: int = 0,
    ) -> None:
        """Begin after `after_bytes`, or after `after_seconds` once there are more than `least_bytes`."""
        self._recording = recording
        self._after_bytes, self._after_seconds = after_bytes, after_seconds
        self._least_bytes = least_bytes
        self._news = threading.Condition()
        self._size = 0
        self._requested = 0
        """The size at which the thread is to be woken."""
        self._is_over = self._is_dropped = self._is_left = False
        self._hurried: float | None = None
        self._outcome: dict[str, Any] = {}
        self._entry: wire.Entry | None = None
        self._capture: SyncLiveCapture | None = None
        self.masked: Mapping[str, int] | None = None
        """How many secrets of each kind were masked in the copy; None if it lacks a part of the output."""
        self.stored_as: str | Beginning = ""
        """The part of a finished output that the service has, for `calling`: the handle of all, or a part."""
        self.failure: str = ""
        """The error if some could not be stored. The owner of the recording may still store it at the end."""
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None
        if new_capture is not None:
            self._thread = threading.Thread(
                target=self._serve, args=[new_capture], name="overspill-live", daemon=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_dropped = True
        self._end()

    def take(self, data: bytes) -> None:
        """Record more of the output, and have it sent. The thread starts with the first bytes."""
        self._recording.take(data)
        if self._thread is not None and data and not self._size:
            with suppress(RuntimeError):  # no thread can be started: the output is stored at the end
                self._thread.start()
        with self._news:
            self._size += len(data)
            if self._size >= self._requested:
                self._news.notify()

    def ended(self, *, status: str, exit_code: int) -> wire.Entry | None:
        """Store the rest, and return the entry; None if no capture was begun, or not all could be stored."""
        self._outcome = {"status": status, "exit_code": exit_code}
        self._end()
        if self._entry is not None:
            self.stored_as = self._entry.id
        elif self._capture is not None:
            self._capture.ends_with(**self._outcome)
            self.stored_as = self._capture.beginning or ""
        return self._entry

    @property
    def accepted(self) -> tuple[str, int]:
        """The handle, and how many bytes of the output the service says to have under it.

        There is no handle if the service knows nothing of it.
        """
        if self._capture is None or not (self._capture.entry or self._capture.beginning):
            return "", 0
        return self._capture.id, self._capture.accepted

    def hurry(self, seconds: float) -> None:
        """Give the service no more than `seconds` from now. A signal's handler may call it."""
        self._hurried = seconds
        if self._capture is not None:
            self._capture.hurry(seconds)

    def leave(self) -> None:
        """Do not wait for the thread: bytes that it has not stored yet are lost.

        For a process that is ending.
        """
        self._is_left = True

    def _end(self) -> None:
        if self._is_left:
            return
        with self._news:
            self._is_over = True
            self._news.notify()
            if self._capture is not None:
                self._capture.source_ended()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()

    def _serve(self, new_capture: Callable[[], SyncLiveCapture]) -> None:
        if not self._is_due():
            return
        try:
            capture = self._begun(new_capture)
            try:
                self._store(capture)
            except _FAILURES:
                self._entry = None
                capture.abort()  # it prepares nothing any more
                raise
        except _FAILURES as error:
            self.failure = str(error)

    def _begun(self, new_capture: Callable[[], SyncLiveCapture]) -> SyncLiveCapture:
        """Begin the capture. Raises what that raises."""
        capture = new_capture()
        with self._news:
            self._capture = capture
            if self._is_over:
                capture.source_ended()
        if self._hurried is not None:
            capture.hurry(self._hurried)
        capture.start()
        return capture

    def _store(self, capture: SyncLiveCapture) -> None:
        """Store all of the recording as it grows. Raises what writing raises."""
        self._copy(capture)
        if self._is_dropped or self._recording.missing:
            capture.abort()
            return
        try:
            self._entry = capture.complete(**self._outcome)
        finally:
            if capture.is_copied:
                self.masked = capture.masked

    def _is_due(self) -> bool:
        """Wait until it is time to begin a capture. Return False if the command has ended before."""
        with self._news:
            left = self._began + self._after_seconds - time.monotonic()
            self._news.wait_for(lambda: self._is_over or self._size > self._after_bytes, max(0.0, left))
            self._news.wait_for(lambda: self._is_over or self._size > self._least_bytes)
            return not self._is_over or self._size > self._after_bytes

    def _copy(self, capture: SyncLiveCapture) -> None:
        """Write all of the recording as it grows. Raises what writing raises."""
        offset, written = 0, 0.0
        while not self._is_dropped:
            self._wait_for(offset + 1)
            self._wait_for(offset + _READ_BYTES, written + PACE_SECONDS - time.monotonic())
            if self._recording.missing:
                return
            data = self._recording.read(offset, _READ_BYTES)
            if not data:
                return
            capture.write(data)
            offset, written = offset + len(data), time.monotonic()

    def _wait_for(self, size: int, seconds: float | None = None) -> None:
        """Wait until the recording has `size` bytes, the command has ended, or `seconds` are over."""
        with self._news:
            self._requested = size
            self._news.wait_for(
                lambda: self._is_over or self._size >= size, None if seconds is None else max(0.0, seconds)
            )
