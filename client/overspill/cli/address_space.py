"""Saves address space under a limit (`ulimit -v`): by default each thread reserves 64 MiB of it."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""
_STACK: Final = 1024 * 1024
"""Bytes of a thread's stack, instead of the usual 8 MiB."""


def spare_address_space() -> None:
    """Make all threads share one arena and have small stacks, if the address space is limited."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes  # noqa: PLC0415  (seldom needed)
    import threading  # noqa: PLC0415  (as the others)

    threading.stack_size(_STACK)
    with suppress(AttributeError, OSError):  # another system's library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
