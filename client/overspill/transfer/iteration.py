"""Iterates over asynchronous iterators from synchronous code: the loop thread does the waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from overspill import wire
    from overspill.execution.calls import Calls
    from overspill.transfer.follow import Following
    from overspill.transfer.streamed_answer import StreamedAnswer

T = TypeVar("T")

_END: Final = object()


class Iteration(Generic[T]):
    """Iterates over an async iterator in the loop thread. `close`, or the end of its block, ends it early.

    `owner` is kept: a client ends its calls when nothing else refers to it.
    """

    def __init__(
        self, calls: Calls, source: AsyncGenerator[T, None] | StreamedAnswer[T], owner: object
    ) -> None:
        self._calls, self._source, self._owner = calls, source, owner

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item = self._calls.run(_next(self._source))
        if item is _END:
            raise StopIteration
        return cast("T", item)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration early. Does nothing the second time, and in a forked child."""
        if not self._calls.thread.is_inherited:
            self._calls.run(self._source.aclose())

    def __del__(self) -> None:
        self._calls.spawn(self._source.aclose())


class Followed(Iteration["wire.FollowedOutput"]):
    """Iterates over the output of a live capture in the loop thread."""

    def __init__(self, calls: Calls, source: Following, owner: object) -> None:
        super().__init__(calls, source, owner)
        self._following = source

    @property
    def end(self) -> wire.FollowedEnd | None:
        """The end of the capture; None if it has not ended."""
        return self._following.end


async def _next(source: AsyncIterator[T]) -> T | object:
    return await anext(source, _END)
