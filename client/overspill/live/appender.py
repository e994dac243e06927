"""The producer's side of the append protocol: the service's offset, and where the next append begins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from overspill.errors import NotFound, OverspillError, ProtocolError, Unreachable, WrongOffset
from overspill.errors.verdicts import may_pass

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill import wire
    from overspill.live.ports import LiveService


class Appender:
    """Begins a live capture, notes how its appends are answered, and completes it.

    `can_continue` tells whether sending can go on at an offset. The methods raise the `OverspillError` of a
    request that failed, and can be called again.
    """

    def __init__(
        self,
        service: LiveService,
        can_continue: Callable[[int], bool],
        *,
        answer_seconds: float | None = None,
    ) -> None:
        """Give up a service that takes the first request and does not answer within `answer_seconds`."""
        self.accepted: int = 0
        """Bytes that the service has taken. Readers see them."""
        self.durable: int = 0
        """Bytes that are in the service's object store."""
        self.is_begun: bool = False
        """Whether the service has said that it knows the capture."""
        self.may_be_known: bool = False
        """Whether the service may know the capture, even though no answer said so."""
        self._service, self._can_continue, self._answer_seconds = service, can_continue, answer_seconds
        self._looked_at = -1
        """The end of the last append. The service may have left its last bytes for later: half a secret."""

    async def begin(self) -> None:
        """Make the capture, unless it is already made."""
        if self.is_begun:
            return
        try:
            await self._answered()
        except OverspillError as error:
            self.may_be_known |= error.was_sent if isinstance(error, Unreachable) else may_pass(error)
            raise
        except asyncio.CancelledError:
            self.may_be_known = True
            raise
        self.is_begun = self.may_be_known = True

    def has_seen(self, end: int, *, is_whole: bool) -> bool:
        """Return whether the service has seen all up to `end`, and the stream if that `is_whole`.

        Bytes that the service left for later are sent with more, or at the end.
        """
        return self.accepted == end or (self._looked_at == end and not is_whole)

    def note(self, status: wire.LiveStatus, stop: int, *, is_last: bool) -> None:
        """Note the offset of the service after an append that ends at `stop`. Raises `ProtocolError`."""
        if not self._can_continue(status.accepted):
            raise ProtocolError(f"the service says to have {status.accepted} bytes, which it cannot have")
        self.accepted, self.durable = status.accepted, max(self.durable, status.durable)
        self._looked_at = stop
        if is_last and self.accepted < stop:
            raise ProtocolError(f"the service has taken {self.accepted} of {stop} bytes, and no more")

    async def recover(self, error: WrongOffset | NotFound) -> None:
        """Go on where the service says. It has more if an answer was lost, and less if it has lost bytes.

        Raises the error if there is nothing to send from there on: the service called those bytes durable,
        or contradicts itself.
        """
        offset = error.offset if isinstance(error, WrongOffset) else 0
        is_new = isinstance(error, NotFound) or offset != self.accepted
        if offset is None or not is_new or not self._can_continue(offset):
            raise error
        if isinstance(error, NotFound):
            await self._service.begin()
        self.accepted, self._looked_at = offset, -1

    async def try_to_complete(self, completion: wire.Completion) -> wire.Entry | None:
        """End the capture. Return None if the service has lost bytes, which have to be sent again."""
        try:
            return await self._service.complete(completion)
        except (WrongOffset, NotFound) as error:
            await self.recover(error)
        return None

    async def _answered(self) -> None:
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._service.begin()
        except TimeoutError as error:
            raise Unreachable(f"the service did not answer within {self._answer_seconds:g} s") from error
