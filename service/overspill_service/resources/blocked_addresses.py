"""Blocks addresses for a moment: accepts no connections from them, since even refusing takes time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from overspill.reading.latest import Latest

from overspill_service.resources.token_buckets import TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable

RATE: Final = 1.0
"""Offences a second that an address may commit in the long run."""
BURST: Final = 8
"""Offences that an address may commit at once. After more it is blocked."""
SECONDS: Final = 1.0
"""How long an address is blocked."""
MAX_ADDRESSES: Final = 10_000


class BlockedAddresses:
    """Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._offences = TokenBuckets("offences", RATE, BURST, clock, max_keys=MAX_ADDRESSES)
        self._until: Latest[str, float] = Latest(MAX_ADDRESSES)

    def note_offence(self, address: str) -> None:
        if self._offences.of(address).take():
            self._until[address] = self._clock() + SECONDS

    def __bool__(self) -> bool:
        return bool(self._until)

    def __contains__(self, address: str) -> bool:
        until = self._until.get(address)
        if until is None:
            return False
        if until <= self._clock():
            del self._until[address]
            return False
        return True
