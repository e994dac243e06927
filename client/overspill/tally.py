"""Counts of all tool outputs that passed a guard, by tool and outcome: the denominator of every rate."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from overspill import measure
from overspill.wire import Outcome

_PENDING: Final = 1024
_MOST_TOOLS: Final = 500
OTHER_TOOLS: Final = "(other)"
"""Where a process sees ever more tool names, as when a model invents them, the rest count here."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many outputs, and their bytes as the tools returned them and as the model got them."""

    count: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


class Tally:
    """Safe to use from any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, Outcome], Count] = {}
        self._inline: dict[str, InlineSizes] = {}

    def add(self, tool: str, outcome: Outcome, before: int, after: int, count: int = 1) -> None:
        with self._lock:
            key = (tool if self._is_known(tool) else OTHER_TOOLS, outcome)
            old = self._counts.get(key, Count())
            self._counts[key] = Count(old.count + count, old.bytes_before + before, old.bytes_after + after)

    def inline(self, tool: str) -> InlineSizes:
        """Where the sizes of this tool's small outputs are noted without a lock."""
        sizes = self._inline.get(tool)
        if sizes is None:
            with self._lock:
                name = tool if self._is_known(tool) else OTHER_TOOLS
                sizes = self._inline.setdefault(name, InlineSizes(name, self))
        return sizes

    def counts(self) -> dict[tuple[str, Outcome], Count]:
        for sizes in list(self._inline.values()):
            sizes.settle()
        with self._lock:
            return dict(self._counts)

    def _is_known(self, tool: str) -> bool:
        return tool in self._inline or len(self._inline) < _MOST_TOOLS


class InlineSizes:
    """Sizes of inline outputs, kept aside in a deque whose `append` needs no lock, and summed up later."""

    __slots__ = ("_sizes", "_tally", "_tool")

    def __init__(self, tool: str, tally: Tally) -> None:
        self._sizes: deque[int] = deque()
        self._tally = tally
        self._tool = tool

    def note(self, text: str) -> int:
        """Count `text`, and answer with its size in bytes."""
        size = len(text) if text.isascii() else measure.size(text)
        self._sizes.append(size)
        if len(self._sizes) > _PENDING:
            self.settle()
        return size

    def settle(self) -> None:
        """Move what was noted so far into the tally."""
        sizes = self._taken()
        if sizes:
            total = sum(sizes)
            self._tally.add(self._tool, Outcome.INLINE, total, total, len(sizes))

    def _taken(self) -> list[int]:
        taken: list[int] = []
        try:
            while True:
                taken.append(self._sizes.popleft())
        except IndexError:
            return taken
