"""Computes the SHA-256 of live captures while their segments are stored.

A hash's state cannot be handed to another process. A process without it reads the stored content again, at
the end.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

MAX_STATES: Final = 20_000
"""States that a process keeps, of some 400 bytes each."""


class HashState(NamedTuple):
    """The hash of a capture's first `size` bytes."""

    size: int
    hash: Any


class Digests:
    def __init__(self) -> None:
        self._states: OrderedDict[str, HashState] = OrderedDict()

    def begin(self, upload: str) -> None:
        """Note that this process sees the capture from its first byte on."""
        self._states[upload] = HashState(0, hashlib.sha256())

    def fed(self, upload: str, offset: int, data: bytes) -> HashState | None:
        """Return the state after the content from `offset` on.

        None if the content before it was not all taken. CPU work: call it in a thread.
        """
        state = self._states.get(upload)
        if state is None or state.size != offset:
            return None
        fed = state.hash.copy()
        fed.update(data)
        return HashState(offset + len(data), fed)

    def keep(self, upload: str, state: HashState | None) -> None:
        """Take a state, once its content is stored."""
        if state is not None:
            self._states[upload] = state

    def forget(self, upload: str) -> None:
        self._states.pop(upload, None)

    def trim(self) -> None:
        """Forget the oldest states beyond `MAX_STATES`."""
        while len(self._states) > MAX_STATES:
            self._states.popitem(last=False)

    async def whole(self, archive: Archive, entry: Entry, rest: bytes) -> bytes:
        """Return the digest of the stored content of an entry and of `rest` after it."""
        state = self._states.get(entry.upload)
        is_known = state is not None and state.size == entry.size
        digest = state.hash.copy() if state is not None and is_known else await self._read(archive, entry)
        await archive.upload_workers(entry.tenant).run(digest.update, rest)
        result: bytes = digest.digest()
        return result

    async def _read(self, archive: Archive, entry: Entry) -> Any:
        digest = hashlib.sha256()
        workers = archive.upload_workers(entry.tenant)
        if entry.segments:
            reader = await archive.reader(entry, workers)
            async with aclosing(reader.content(0, entry.size)) as pieces:
                async for piece in pieces:
                    await workers.run(digest.update, piece)
        return digest
