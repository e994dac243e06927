"""Handlers of signals that hold for a block."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@contextmanager
def handled(handlers: Mapping[signal.Signals, Callable[..., object]]) -> Iterator[None]:
    """Handle these signals in the block, and afterwards as before it."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
