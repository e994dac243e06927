"""Replaces a live capture that broke off by the whole output of its command, under the same id.

So whoever has the handle of the beginning, from a listing or from following it, can read the whole.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from overspill.text import encoding
from overspill.transfer.live_calls import give_up

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from overspill import wire
    from overspill.live.ports import Beginning
    from overspill.spools.store_request import StoreRequest
    from overspill.text.body import Body
    from overspill.transfer.client import Client


class BrokenCapture:
    """The beginning that the service has, in the form in which a guard's storage takes it."""

    def __init__(self, beginning: Beginning) -> None:
        self.id: str = beginning.id
        self.producer: str = beginning.producer
        self.labels: Mapping[str, str] = beginning.labels
        self._size, self._sha256 = beginning.size, beginning.sha256

    def left(self, size: int) -> int:
        """Return `size`: all of the output is sent again."""
        return size

    def is_beginning_of(self, body: Body) -> bool:
        """Return whether the service can have nothing but a beginning of `body`. Raises `OSError`."""
        return hashlib.sha256(encoding.part(body, 0, self._size)).digest() == self._sha256

    async def completed(
        self,
        client: Client,
        request: StoreRequest,  # noqa: ARG002  (a stream that goes on from its beginning needs it)
        whole: Callable[[], Coroutine[Any, Any, wire.Entry]],
        progress: Callable[[int], object],  # noqa: ARG002  (as above)
    ) -> wire.Entry:
        """End the capture, and store the whole in its place. Raises `OverspillError`."""
        await give_up(client, self.id, self.producer)
        return await whole()


class LiveOutcome(NamedTuple):
    """What the service has of an output that was sent as it came: all of it, or a beginning. For `calling`.

    `capture` is the handle of a capture that has all of it.
    """

    capture: str = ""
    beginning: BrokenCapture | None = None

    @classmethod
    def of(cls, stored: wire.Entry | None, beginning: Beginning | None) -> Self:
        """Return it, given what became of the upload."""
        if stored is not None:
            return cls(stored.id)
        return cls() if beginning is None else cls(beginning=BrokenCapture(beginning))
