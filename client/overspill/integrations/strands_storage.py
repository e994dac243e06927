"""Strands Agents: a storage, for those who keep Strands' own offloader of results.

agent = Agent(model, tools=tools, plugins=[ContextOffloader(OverspillStorage())])
"""

from __future__ import annotations

import asyncio
import builtins
from typing import TYPE_CHECKING, Any, Final

from strands.storage.search import KeywordSearchStrategy
from strands.types.exceptions import StorageError

from overspill import wire
from overspill.errors import Absent, InvalidId, OverspillError
from overspill.guard.call_context import minted
from overspill.transfer.client import call
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION: Final = "strands-storage"


class OverspillStorage:
    """Keeps what Strands stores as captures of one session.

    It is both of Strands' ports: `Storage` of `strands.storage`, and the older one of `ContextOffloader`,
    which that takes if it can. The references of the offloader are handles then, so that `inspect_output`
    reads them too. A capture lives `ttl` seconds, or as long as the service's default: nothing else evicts
    it. Every method raises `StorageError` if the service fails or a key has more than 4,096 bytes, and
    `retrieve` raises `KeyError` if there is no such capture.
    """

    def __init__(
        self, client: SyncClient | None = None, *, session: str = SESSION, ttl: int | None = None
    ) -> None:
        self.client: SyncClient = SyncClient() if client is None else client
        self.session = session
        self.ttl = ttl

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store one block of a result; return its handle."""
        entry = await _called(
            self.client.put,
            content,
            call_id=key,
            session=self.session,
            content_type=content_type,
            ttl=self.ttl,
        )
        return entry.id

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return the bytes of a block, and its content type."""
        try:
            entry = await asyncio.to_thread(self.client.get, reference)
            return await asyncio.to_thread(self.client.content, entry.id), entry.content_type
        except (Absent, InvalidId) as error:
            raise KeyError(f"reference not found: {reference}") from error
        except OverspillError as error:
            raise StorageError(str(error)) from error

    async def write(self, key: str, data: bytes) -> None:
        """Store data under a key, in the place of what it had."""
        before = await self._captures(_checked(key))
        fresh = wire.capture_id(self.session, minted(), b"")
        await _called(self.client.put, data, call_id=key, session=self.session, ttl=self.ttl, id=fresh)
        await self._remove(before)

    async def read(self, key: str) -> bytes | None:
        """Return the data of a key, or None if it has none."""
        try:
            return await asyncio.to_thread(self.client.content, call(key), session=self.session)
        except Absent:
            return None
        except OverspillError as error:
            raise StorageError(str(error)) from error

    async def delete(self, key: str) -> None:
        """Remove the data of a key, if it has any."""
        await self._remove(await self._captures(_checked(key)))

    async def list(self, query: str = "") -> builtins.list[str]:
        """Return the keys that begin with `query`, in order."""
        entries = await _called(lambda: builtins.list(self.client.iterate(session=self.session)))
        return sorted({entry.call_id for entry in entries if entry.call_id.startswith(query)})

    async def search(self, query: str) -> Any:
        """Search the stored content by words, as Strands' own storages do."""
        return await KeywordSearchStrategy().search(self, query)

    async def _captures(self, key: str) -> builtins.list[str]:
        page = await _called(self.client.list, session=self.session, call_id=key)
        return [entry.id for entry in page.captures]

    async def _remove(self, captures: builtins.list[str]) -> None:
        for capture in captures:
            await _called(self.client.delete, capture)


def _checked(key: str) -> str:
    if not key or wire.fit(key) != key:
        raise StorageError(f"{key[:80]!r} is not a key: keys have 1 to 4,096 bytes of UTF-8")
    return key


async def _called(function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call the client in a thread. Raises `StorageError` for what it raises."""
    try:
        return await asyncio.to_thread(function, *args, **more)
    except OverspillError as error:
        raise StorageError(str(error)) from error
