"""The mode in which requests need no key."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.key_records import AccessMode

if TYPE_CHECKING:
    from overspill_service.archive.keyring import Keyring
    from overspill_service.catalog import Catalog

MODE_SECONDS: Final = 5.0
"""Seconds for which the answer whether requests need a key is reused."""


class OpenMode:
    """Says whether requests without a key are served. The last choice counts, whatever keys there are.

    While the catalog is incomplete, it asks the object store. So every process decides alike.
    """

    def __init__(self, catalog: Catalog, keyring: Keyring) -> None:
        self._catalog, self._keyring = catalog, keyring
        self._mode, self._until = AccessMode.CLOSED, -math.inf

    async def is_open(self) -> bool:
        """Return whether a key may be missing. Raises `CatalogUnavailable`, `StoreUnavailable`."""
        return (await self._chosen()).is_open

    async def has_no_keys(self) -> bool:
        """Return whether no key was ever made, so that a credential which is unknown means nothing."""
        return await self._chosen() is AccessMode.UNTIL_KEY

    async def _chosen(self) -> AccessMode:
        asked_at = time.monotonic()
        if asked_at >= self._until:
            mode = await self._catalog.access_mode() if await self._catalog.is_complete() else None
            self._mode = mode or await self._keyring.mode() or AccessMode.CLOSED
            self._until = asked_at + MODE_SECONDS
        return self._mode
