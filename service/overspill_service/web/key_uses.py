"""The times at which keys were last used: noted at each request, and written to the catalog now and then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from overspill.reading.latest import Latest

from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog import Catalog

USE_SECONDS: Final = 60.0
"""The precision of a key's last use, in seconds."""
MAX_REMEMBERED: Final = 10_000
"""The number of keys whose last note this process remembers."""


class KeyUses:
    """The last uses of keys, by their hashes. `clock`: seconds since the epoch."""

    def __init__(self, catalog: Catalog, clock: Callable[[], float]) -> None:
        self._catalog, self._clock = catalog, clock
        self._unreported: dict[str, float] = {}
        """Uses that the catalog does not know yet."""
        self._noted: Latest[str, float] = Latest(MAX_REMEMBERED)

    def note(self, key_hash: str) -> None:
        """Remember that a key was used now, unless it was less than `USE_SECONDS` ago too."""
        now = self._clock()
        if now - self._noted.get(key_hash, -math.inf) >= USE_SECONDS:
            self._noted[key_hash] = self._unreported[key_hash] = now

    async def report(self) -> None:
        """Write the new uses to the catalog. Raises `CatalogUnavailable`, and then forgets nothing."""
        uses, self._unreported = self._unreported, {}
        try:
            if uses:
                await self._catalog.note_uses(uses)
        except CatalogUnavailable:
            self._unreported = uses | self._unreported
            raise
