"""Wait in a test for what other threads and processes do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 0.02
PATIENCE = 120.0
"""Seconds after which a test takes what it waits for to hang: long, for a busy machine is slow."""


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether it comes true, looked at again and again for so long."""
    waiting = threading.Event()
    return any(condition() or waiting.wait(EVERY) for _ in range(int(seconds / EVERY)))
