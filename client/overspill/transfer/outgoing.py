"""Sends a request's body piece by piece, and moves the request's deadline with each piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.execution import threads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill.transfer.attempts import Attempts
    from overspill.transfer.request import Body

_PIECE: Final = 64 * 1024
"""Bytes of one piece of a body in memory, if somebody watches its progress."""
_LOCAL_PIECE: Final = 256 * 1024
"""The same for a service on this machine: sending takes no time there, but each piece a turn of the loop."""


class Outgoing:
    """The body of one attempt. `failure` keeps what the body raised, because aiohttp hides it."""

    def __init__(self, body: Body, attempts: Attempts, *, is_local: bool = False) -> None:
        """`is_local`: the service is on this machine."""
        self._body = body
        self._attempts = attempts
        self._piece = _LOCAL_PIECE if is_local else _PIECE
        self.failure: Exception | None = None

    @property
    def single_piece(self) -> bytes | None:
        """The whole body if it is sent in one piece, else None."""
        parts = self._body.parts
        if parts is None or len(parts) > 1:
            return None
        whole = parts[0] if parts else b""
        is_watched = self._body.on_sent is not None and len(whole) > _PIECE
        return None if is_watched else whole

    async def _pieces(self) -> AsyncIterator[bytes | memoryview]:
        if self._body.parts is not None:
            for part in self._body.parts:
                view = memoryview(part)
                for start in range(0, len(view), self._piece):
                    yield view[start : start + self._piece]
            return
        pieces = self._body.pieces()
        while (piece := await threads.run_blocking(next, pieces, None)) is not None:
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes | memoryview]:
        try:
            async for piece in self._pieces():
                yield piece
                self._attempts.extend()
                if self._body.on_sent is not None:
                    self._body.on_sent(len(piece))
        except Exception as error:
            self.failure = error
            raise
