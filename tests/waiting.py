"""Wait in a test for what other threads and processes do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 0.02


def until(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Whether it comes true, looked at again and again for so long."""
    waiting = threading.Event()
    return any(condition() or waiting.wait(EVERY) for _ in range(int(seconds / EVERY)))
