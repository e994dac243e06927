"""Uploads waiting outputs when the process ends, while threads can still be started."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from contextlib import suppress
from typing import Final, Protocol


class Uploader(Protocol):
    """Something to close when the process ends. `close` may upload for `exit_seconds`."""

    exit_seconds: float

    def close(self, seconds: float) -> None:
        """Upload waiting outputs within `seconds`. Raises nothing."""


_open: Final[weakref.WeakSet[Uploader]] = weakref.WeakSet()
_hook: Final = threading.Lock()
"""Taken for good by whoever has registered the hook; a forked child inherits both."""


def register(uploader: Uploader) -> None:
    """Close `uploader` when the process ends, unless it is unregistered or garbage-collected before."""
    _open.add(uploader)
    if _hook.acquire(blocking=False):
        # Callbacks of `atexit` come too late: thread pools are closed then, and new threads refused.
        register_hook = getattr(threading, "_register_atexit", atexit.register)
        with suppress(RuntimeError):  # the interpreter is ending already
            register_hook(_upload)


def unregister(uploader: Uploader) -> None:
    """Do not close this uploader when the process ends, because it is already closed."""
    _open.discard(uploader)


def _upload() -> None:
    uploaders = list(_open)
    until = time.monotonic() + max((each.exit_seconds for each in uploaders), default=0.0)
    with suppress(KeyboardInterrupt):
        for each in uploaders:
            each.close(max(0.0, until - time.monotonic()))
