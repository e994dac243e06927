"""Detect that a catalog was replaced by an older copy: its generation is also kept in the object store.

A generation ends when a process begins to serve, once a minute while captures are stored, and when the
process stops. The object `v1-catalog/{name}` names the current one. At each start:

| the catalog's generation | what is done |
|---|---|
| is the one in the object store, and closed | nothing |
| is the one in the object store, and open | a rebuild in the background: after a kill, or of a copy |
| is another one | the catalog is incomplete until it is rebuilt |

Every process compares at its start. A lease lets one process at a time begin generations.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.records import Generation
from overspill_service.store_format import object_keys
from overspill_service.telemetry.logs import fields

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive

LEASE: Final = "generation"
LEASE_TTL: Final = 15.0
"""Seconds after which another process takes over from one that died."""
GENERATION_SECONDS: Final = 60.0
"""Seconds for which a generation lasts while captures are stored."""
CLOSE_SECONDS: Final = 2.0
"""How long a stopping process waits for another one that is closing the generation too."""
ATTEMPTS: Final = 4
PAUSE_SECONDS: Final = 0.05

log = logging.getLogger(__name__)


class Generations:
    """One process's part in keeping the catalog's generation."""

    def __init__(self, archive: Archive, holder: str) -> None:
        self._archive, self._holder = archive, holder
        self._has_compared = self._is_keeper = False
        self._state = ""
        self._began = 0.0

    async def keep(self) -> None:
        """Compare the catalog the first time.

        Then, if this process holds the lease, end a generation that has lasted.
        """
        catalog = self._archive.catalog
        generation = await catalog.generation()
        if generation is None:
            return
        if not self._has_compared:
            await self._compare()
            self._has_compared = True
        if not await catalog.lease(LEASE, self._holder, LEASE_TTL):
            self._is_keeper = False
            return
        has_lasted = time.monotonic() - self._began >= GENERATION_SECONDS
        if not self._is_keeper or (has_lasted and generation.state != self._state):
            await self._begin(is_closed=False)
            self._is_keeper = True

    async def close(self) -> None:
        """Record that this process writes nothing more, unless another process holds the lease too long."""
        catalog = self._archive.catalog
        if await catalog.generation() is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while not await catalog.lease(LEASE, self._holder, LEASE_TTL):  # noqa: ASYNC110  (no event)
                    await asyncio.sleep(PAUSE_SECONDS)
                if self._has_compared:
                    await self._begin(is_closed=True)
                await catalog.release(LEASE, self._holder)

    async def _compare(self) -> None:
        """Compare the catalog's generation with the one in the object store."""
        catalog = self._archive.catalog
        for _ in range(ATTEMPTS):  # another process may be between the two steps of `_begin`
            generation, stored = await catalog.generation() or Generation(), await self._stored_names()
            if stored in ([], [generation.name]):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        if stored == [generation.name]:
            if not generation.is_closed:
                await catalog.doubt(is_older=False)
        elif stored or generation.name:
            await catalog.doubt(is_older=True)
            log.warning(
                "the catalog is not the one that was last used with these objects: it is rebuilt",
                extra=fields(generation=generation.name, expected=",".join(stored)),
            )

    async def _begin(self, *, is_closed: bool) -> None:
        """Begin a generation, first in the object store. So no catalog ever seems newer than it is."""
        catalog, store = self._archive.catalog, self._archive.store
        earlier, name = await self._stored_names(), object_keys.new_upload()
        before = await catalog.generation()
        await store.put(object_keys.generation_key(name), [b"generation\n"])
        await catalog.begin_generation(name, is_closed=is_closed)
        await store.delete(map(object_keys.generation_key, earlier))
        self._state = "" if before is None else before.state
        self._began = time.monotonic()

    async def _stored_names(self) -> list[str]:
        """Return the names in the object store: one, or two if a process died between two steps."""
        prefix = object_keys.GENERATIONS
        return [stored.key.removeprefix(prefix) async for stored in self._archive.store.list(prefix)]
