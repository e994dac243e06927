"""A queue that is fair to those who wait in it, however many things one of them brings.

Weighted fair queueing with equal weights (Demers, Keshav and Shenker, 1989): things leave in the order in
which they would be done if all flows shared the work bit by bit. So a small thing of a flow that brings
little does not wait for thousands of large ones of another, and no flow waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

T = TypeVar("T")

_FIXED_COST: Final = 16 * 1024
"""What each thing costs besides its bytes, in bytes."""


@dataclass(slots=True, eq=False)
class Entry(Generic[T]):
    """A thing that waits. `finish` is when it would be done, in the virtual time of the queue."""

    thing: T | None
    flow: Hashable
    size: int
    finish: float
    number: int

    def __lt__(self, other: Entry[T]) -> bool:
        return (self.finish, self.number) < (other.finish, other.number)


@dataclass(slots=True)
class _Flow:
    waiting: int = 0
    finish: float = 0.0


class FairQueue(Generic[T]):
    """Used by one thread at a time. `size` is the bytes of all that waits."""

    def __init__(self) -> None:
        self.size = 0
        self._heap: list[Entry[T]] = []
        self._flows: dict[Hashable, _Flow] = {}
        self._numbers = count()
        self._now = 0.0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, thing: T, flow: Hashable, size: int) -> Entry[T]:
        """Add a thing of so many bytes to its flow; return what `remove` takes."""
        state = self._flows.setdefault(flow, _Flow())
        state.finish = max(self._now, state.finish) + size + _FIXED_COST
        state.waiting += 1
        entry = Entry(thing, flow, size, state.finish, next(self._numbers))
        heappush(self._heap, entry)
        self._length += 1
        self.size += size
        return entry

    def first(self) -> T:
        """Return the thing whose turn it is. Raises `IndexError` if nothing waits."""
        while (thing := self._heap[0].thing) is None:
            heappop(self._heap)
        return thing

    def pop(self) -> T:
        """Take the thing whose turn it is. Raises `IndexError` if nothing waits."""
        thing, entry = self.first(), heappop(self._heap)
        self._now += (entry.size + _FIXED_COST) / len(self._flows)
        self._forget(entry)
        return thing

    def remove(self, entry: Entry[T]) -> None:
        """Let a thing wait no longer. It is not kept in memory; once is enough."""
        if entry.thing is None:
            return
        self._forget(entry)
        if len(self._heap) > 2 * self._length + 64:  # what was removed leaves its place only here
            self._heap = [each for each in self._heap if each.thing is not None]
            heapify(self._heap)

    def _forget(self, entry: Entry[T]) -> None:
        entry.thing = None
        self._length -= 1
        self.size -= entry.size
        state = self._flows[entry.flow]
        state.waiting -= 1
        if not state.waiting:
            del self._flows[entry.flow]
        if not self._length:
            self._heap.clear()
            self._now = 0.0
