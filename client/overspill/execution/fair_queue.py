"""A queue that is fair to its flows, however many items one of them brings.

A flow is the items of one session of one guard. This is weighted fair queueing with equal weights (Demers,
Keshav and Shenker, 1989): items leave in the order in which they would be done if all flows shared the work
bit by bit. So a small item of one flow does not wait for thousands of large items of another, and no flow
waits without end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

T = TypeVar("T")

_FIXED_COST: Final = 16 * 1024
"""Bytes added to the size of each item, for its cost besides its content."""


@dataclass(slots=True, eq=False)
class Queued(Generic[T]):
    """An item in the queue, of `size` bytes. `finish` is when it would be done, in the queue's virtual time.

    `item` is None once it has left the queue.
    """

    item: T | None
    flow: Hashable
    size: int
    finish: float
    number: int

    def __lt__(self, other: Queued[T]) -> bool:
        return (self.finish, self.number) < (other.finish, other.number)


class FairQueue(Generic[T]):
    """`size` is the bytes of all items together. For one thread at a time."""

    def __init__(self) -> None:
        self.size: int = 0
        self._heap: list[Queued[T]] = []
        self._waiting: Counter[Hashable] = Counter()
        """How many items each flow has here."""
        self._finishes: dict[Hashable, float] = {}
        """When the last item of each flow would be done."""
        self._numbers = count()
        self._time = 0.0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, item: T, flow: Hashable, size: int) -> Queued[T]:
        """Add an item of `size` bytes to its flow. Return what `remove` takes."""
        finish = self._finishes[flow] = max(self._time, self._finishes.get(flow, 0.0)) + size + _FIXED_COST
        self._waiting[flow] += 1
        queued = Queued(item, flow, size, finish, next(self._numbers))
        heappush(self._heap, queued)
        self._length += 1
        self.size += size
        return queued

    def first(self) -> Queued[T]:
        """Return the next item, and leave it in the queue. Raises `IndexError` if the queue is empty."""
        while self._heap[0].item is None:
            heappop(self._heap)
        return self._heap[0]

    def pop(self) -> T:
        """Take the next item out of the queue. Raises `IndexError` if the queue is empty."""
        item = self.first().item
        assert item is not None
        queued = heappop(self._heap)
        self._time += (queued.size + _FIXED_COST) / len(self._waiting)
        self._forget(queued)
        return item

    def remove(self, queued: Queued[T]) -> None:
        """Take an item out of the queue, and out of memory. Does nothing if it has left already."""
        if queued.item is None:
            return
        self._forget(queued)
        if len(self._heap) > 2 * self._length + 64:  # removed items leave the heap only here
            self._heap = [each for each in self._heap if each.item is not None]
            heapify(self._heap)

    def _forget(self, queued: Queued[T]) -> None:
        queued.item = None
        self._length -= 1
        self.size -= queued.size
        self._waiting[queued.flow] -= 1
        if not self._waiting[queued.flow]:
            del self._waiting[queued.flow], self._finishes[queued.flow]
        if not self._length:
            self._heap.clear()
            self._time = 0.0
