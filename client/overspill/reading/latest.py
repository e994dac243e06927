"""A dict of bounded size, for things that a process remembers for as long as it runs."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(OrderedDict[K, V]):
    """The last `limit` items that were set. Setting an item again makes it the latest."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)  # each step alone is safe: several threads may set items at once
        super().__setitem__(key, value)
        if len(self) > self._limit:
            self.popitem(last=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a copy: frameworks copy the plugins that have one."""
        return type(self), (self._limit,), None, None, iter(self.items())
