"""Address space under a limit, of which each thread reserves 64 MiB unless it is told not to."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""
_STACK: Final = 1024 * 1024
"""Bytes of a thread's stack, in the place of the 8 MiB that are usual."""


def spare_address_space() -> None:
    """Let all threads allocate from one place, with small stacks, where the address space is limited."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes  # noqa: PLC0415  (seldom needed)
    import threading  # noqa: PLC0415  (as the others)

    threading.stack_size(_STACK)
    with suppress(AttributeError, OSError):  # another system's library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
