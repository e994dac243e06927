"""Resets objects in a forked child: their locks may be held by threads that the child does not have."""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class ForkAware(Protocol):
    """An object whose locks, threads or figures belong to one process."""

    def reset_after_fork(self) -> None:
        """Reset the object in a forked child, in which only the forking thread exists."""


_registered: Final[weakref.WeakSet[ForkAware]] = weakref.WeakSet()


def register(instance: ForkAware) -> None:
    """Reset `instance` in every child that this process forks, for as long as it lives."""
    _registered.add(instance)


def _after_fork() -> None:
    for instance in list(_registered):
        instance.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
