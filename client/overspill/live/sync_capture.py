"""A live capture for synchronous code in any thread. The loop thread sends the writes."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from overspill.execution.calls import FORKED, OWN_LOOP
from overspill.execution.waiting import wait_blocking
from overspill.live.files import LiveFile, text_file
from overspill.live.live_capture import CANCELLED_SECONDS, WRITE_BYTES
from overspill.live.pending_writes import bytes_of

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from overspill import wire
    from overspill.execution.calls import Calls
    from overspill.execution.waiting import Reply
    from overspill.live.live_capture import LiveCapture
    from overspill.live.ports import Beginning

log: Final = logging.getLogger("overspill")

_open_captures: Final[weakref.WeakValueDictionary[int, SyncLiveCapture]] = weakref.WeakValueDictionary()
"""By identity. Other threads may begin captures while they are listed, which a `WeakSet` does not allow."""
_hook: Final = threading.Lock()
"""Taken for good by whoever has registered the hook; a forked child inherits both."""


class SyncLiveCapture:
    """An output that is stored as it is written, for a `with` block. It does what a `LiveCapture` does.

    A write returns once its bytes wait in memory, and needs no turn of the loop thread. The capture belongs
    to the process that began it: a forked child that leaves the block ends nothing. If the process ends,
    or the client is closed before the block is left, the capture ends as `partial`. `owner` is kept: a client
    ends its calls when nothing else refers to it.
    """

    def __init__(self, calls: Calls, capture: LiveCapture, owner: object) -> None:
        self._calls, self._capture = calls, capture
        self.owner: object = owner
        self._is_woken = False

    @property
    def id(self) -> str:
        """The handle, under which the output can be read at once."""
        return self._capture.id

    @property
    def entry(self) -> wire.Entry | None:
        """The capture's entry, once it has ended in the service."""
        return self._capture.entry

    @property
    def spooled(self) -> str:
        """The reason why the stream waits on this machine for its upload; empty if the service has it."""
        return self._capture.spooled

    @property
    def accepted(self) -> int:
        """Bytes that the service has taken. Readers see them."""
        return self._capture.accepted

    @property
    def durable(self) -> int:
        """Bytes that are in the service's object store."""
        return self._capture.durable

    @property
    def masked(self) -> Mapping[str, int]:
        """The number of secrets of each kind that were masked so far."""
        return self._capture.masked

    @property
    def is_copied(self) -> bool:
        """Whether the stream has ended and the copy has all of it."""
        return self._capture.is_copied

    @property
    def beginning(self) -> Beginning | None:
        """The beginning of an unfinished stream that the service may have. None if it has nothing of it."""
        return self._capture.beginning

    @property
    def is_open(self) -> bool:
        """Whether the capture has begun in this process and not ended."""
        return self._capture.is_open and not self._calls.thread.is_inherited

    @property
    def _is_stored(self) -> bool:
        return self.entry is not None or bool(self.spooled)

    def __enter__(self) -> Self:
        self._calls.run(self._capture.begin())
        _end_with_process(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not (self._is_stored or self._calls.thread.is_inherited):
            self._calls.run(self._capture.__aexit__(kind, error, trace))

    def start(self) -> None:
        """Begin without waiting for the service, instead of `with`. See `LiveCapture.start`."""
        self._calls.run(_in_loop(self._capture.start))

    def write(self, data: str | bytes | bytearray | memoryview) -> int:
        """Write text, as UTF-8, or bytes; return how many bytes that are. See `LiveCapture.write`.

        Raises `RuntimeError` in a forked child, as `flush`, `complete` and `abort` do.
        """
        if self._calls.thread.is_inherited:
            raise RuntimeError(FORKED)
        content = bytes_of(data)
        for start in range(0, len(content), WRITE_BYTES):
            piece = content[start : start + WRITE_BYTES]
            while not self._capture.offer(piece):
                self._calls.run(self._capture.producer.until_room())
            self._wake()
        return len(content)

    def flush(self) -> None:
        """Wait until the service has accepted what was written. Raises as `write` does."""
        self._calls.run(self._capture.flush())

    def source_ended(self) -> None:
        """Say that all remaining bytes already exist. See `LiveCapture.source_ended`."""
        with suppress(RuntimeError):  # the loop has ended, and the sending with it
            self._calls.thread.loop.call_soon_threadsafe(self._capture.source_ended)

    def hurry(self, seconds: float) -> None:
        """Let sending fail unless it ends within `seconds` from now. See `LiveCapture.hurry`."""
        with suppress(RuntimeError):  # as above
            self._calls.thread.loop.call_soon_threadsafe(self._capture.hurry, seconds)

    def close(self) -> None:
        """Stop sending, and store nothing more. See `LiveCapture.aclose`."""
        if not self._calls.thread.is_inherited:
            self._calls.run(self._capture.aclose())

    def ends_with(self, *, status: str | None = None, exit_code: int | None = None) -> None:
        """Set the status and the exit code that the capture gets when its block is left."""
        self._capture.ends_with(status=status, exit_code=exit_code)

    def complete(self, *, status: str | None = None, exit_code: int | None = None) -> wire.Entry | None:
        """Send the rest and end the capture. See `LiveCapture.complete`."""
        return self._calls.run(self._capture.complete(status=status, exit_code=exit_code))

    def abort(self, status: str | None = None) -> wire.Entry | None:
        """Send the rest and end the capture as `partial`. See `LiveCapture.abort`."""
        return self._calls.run(self._capture.abort(status))

    def give_up(self, status: str) -> Reply[None]:
        """Begin to end the capture as `partial`, within a few seconds. See `LiveCapture.give_up`."""
        return self._calls.submit(self._capture.give_up(status))

    def file(self) -> LiveFile:
        """Return a binary file that writes to the capture. Closing it ends only the file."""
        return LiveFile(self.write)

    def text_file(self) -> io.TextIOWrapper:
        """Return a text file that writes to the capture at once. Closing it ends only the file."""
        return text_file(self.write)

    def _wake(self) -> None:
        """Let the loop thread send the writes. One call is enough for all writes until it comes."""
        if not self._is_woken:
            self._is_woken = True
            self._calls.thread.loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._is_woken = False
        self._capture.producer.wake()


async def _in_loop(work: Callable[[], None]) -> None:
    work()


def _end_with_process(capture: SyncLiveCapture) -> None:
    """End this capture with the process, unless it has ended before.

    That is after all threads but the daemons have ended, for they may still write, and before the clients of
    the captures are closed.
    """
    _open_captures[id(capture)] = capture
    if _hook.acquire(blocking=False):  # only now: what closes its client is registered, and called after this
        atexit.register(_end_all)


def _end_all() -> None:
    end_open(None, "its process ended")


def end_open(owner: object, reason: str) -> None:
    """End the captures of one owner, or all, whose block is not left. Log what is not stored by that.

    Raises `RuntimeError` in the loop thread if there are any: only that thread could end them.
    """
    captures = [capture for reference in _open_captures.valuerefs() if (capture := reference())]
    unfinished = [each for each in captures if each.is_open and owner in {None, each.owner}]
    if any(each._calls.thread.is_here for each in unfinished):  # noqa: SLF001  (this module's own)
        raise RuntimeError(OWN_LOOP)
    replies = []
    for capture in unfinished:
        with suppress(RuntimeError):
            replies.append(capture.give_up(reason))
    until = time.monotonic() + CANCELLED_SECONDS
    for reply in replies:
        wait_blocking(reply, max(0.0, until - time.monotonic()))
    for capture in unfinished:
        if not capture._is_stored:  # noqa: SLF001  (this module's own)
            log.warning("the end of the live capture %s is not stored: %s first", capture.id, reason)
