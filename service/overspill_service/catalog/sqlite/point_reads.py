"""Read single records on the event loop itself, which takes less time than to ask a thread.

The pages of a record are in memory, nearly always.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeVar

from overspill_service.resources.quick_work import QuickWork

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog.sqlite.file import CatalogFile
    from overspill_service.catalog.sqlite.worker import Worker

T = TypeVar("T")


class PointReads:
    """A connection of the event loop's own. Without one, threads do all reads."""

    def __init__(
        self, file: CatalogFile, connection: sqlite3.Connection | None, threads: Worker, *, is_local: bool
    ) -> None:
        """`is_local`: whether the file is on a disk of this machine."""
        self._file, self._connection, self._threads = file, connection, threads
        self._quick = QuickWork(is_possible=is_local)
        if connection is not None:
            connection.execute("PRAGMA busy_timeout = 0")

    async def run(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of a step that looks up a record by its key. Raises `CatalogUnavailable`."""
        if self._connection is None or not self._quick.is_allowed:
            return await self._threads.run(step)
        try:
            with self._quick.watched():
                self._file.require_usable()
                return step(self._connection)
        except sqlite3.Error:  # another process holds the file, or it fails: a thread finds out
            self._quick.forbid()
            return await self._threads.run(step)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
