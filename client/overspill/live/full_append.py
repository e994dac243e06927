"""One append under way. The next one may be sent before its answer comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.live.ports import LiveService


class FullAppend:
    """An append from `offset` on. It sets `news` once it is sent, and once it is answered."""

    def __init__(
        self,
        service: LiveService,
        offset: int,
        pieces: Sequence[bytes],
        news: asyncio.Event,
        *,
        is_last: bool,
    ) -> None:
        self.end: int = offset + sum(map(len, pieces))
        self.is_last = is_last
        self.is_sent: bool = False
        self._news = news
        self.answer = asyncio.create_task(
            service.append(offset, pieces, is_last=is_last, on_sent=self._note_sent)
        )
        self.answer.add_done_callback(lambda _: news.set())

    def _note_sent(self) -> None:
        self.is_sent = True
        self._news.set()

    async def drop(self) -> None:
        """Cancel the append. Raises nothing: the next append finds out whether the service has this one."""
        self.answer.cancel()
        await asyncio.wait((self.answer,))
        if not self.answer.cancelled():
            self.answer.exception()
