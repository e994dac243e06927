"""How slow a body may come: a client that trickles must not hold its place for ever."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from overspill_service.errors import IncompleteBody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill_service.settings.settings import Settings


class BodyPatience:
    """Watches one body. Only the time in which the service waits for the client counts against its rate."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._grace = settings.min_upload_rate, settings.idle_timeout
        self._limit, self._clock = settings.upload_timeout, clock
        self._began = clock()
        self._waited = 0.0
        self._size = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as waited for the client."""
        since = self._clock()
        yield
        self._waited += self._clock() - since

    def received(self, size: int) -> None:
        """Count `size` bytes. Raises `IncompleteBody` if the body is too slow, or takes too long."""
        self._size += size
        if self._waited > self._grace and self._size < self._rate * self._waited:
            raise IncompleteBody(
                f"the body came slower than {self._rate} bytes a second for {self._waited:.0f} s; nothing "
                "was stored: collect it, then send it"
            )
        if self._limit and self._clock() - self._began > self._limit:
            raise IncompleteBody(
                f"the body took longer than {self._limit:g} s; nothing was stored: send it faster or in parts"
            )
