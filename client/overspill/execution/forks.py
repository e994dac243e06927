"""What a forked child cannot go on with as it is: locks that no thread of it holds, its parent's counts."""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Renewable(Protocol):
    def start_afresh(self) -> None:
        """Begin anew in a forked child, where only the forking thread lives on."""


_all: Final[weakref.WeakSet[Renewable]] = weakref.WeakSet()


def renew_in_child(thing: Renewable) -> None:
    """Let `thing` start afresh in every child that this process forks, for as long as it lives."""
    _all.add(thing)


def _after_fork() -> None:
    for thing in list(_all):
        thing.start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
