"""The base of all parts of the SQLite catalog: the file, its threads and its clock."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill_service.catalog import encoding
from overspill_service.catalog.sqlite import clock as file_clock
from overspill_service.catalog.sqlite import schema
from overspill_service.catalog.sqlite.point_reads import PointReads
from overspill_service.catalog.sqlite.worker import Worker
from overspill_service.errors import CatalogUnavailable
from overspill_service.resources.quick_work import is_on_local_disk

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

READERS: Final = 2


class SqliteAccess:
    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file. `path` None keeps everything in memory. Raises `CatalogUnavailable`.

        `clock` is the machine's, in seconds since the epoch.
        """
        self._path, self._machine, self._boot = path, clock, file_clock.boot()
        self._damaged = encoding.SkippedRecords()
        self._file, writer = schema.prepare(path)
        with ExitStack() as unfinished:
            unfinished.enter_context(closing(writer))
            self._reading = file_clock.reconcile(file_clock.stored(writer), *self._clock_inputs())
            more = schema.connections(self._file, path, READERS + 1) if path is not None else []
            unfinished.pop_all()
        self._writer = Worker(self._file, [writer], "catalog-writer", writes=True)
        self._reader, points = self._writer, None
        if more:
            *readers, points = more
            self._reader = Worker(self._file, readers, "catalog-reader", writes=False)
        is_local = path is not None and is_on_local_disk(path)
        self._points = PointReads(self._file, points, self._reader, is_local=is_local)

    async def now(self) -> float:
        """Return the time by the file's clock. The reading is stored in the file if that is possible."""
        moment = self._clock_inputs()
        with suppress(CatalogUnavailable):
            self._reading = await self._writer.run(partial(file_clock.advance, *moment))
        return self._clock()

    async def trust_clock(self) -> float:
        """Accept the machine's clock as right. Return by how many seconds that moves the time."""
        boot, steady, machine = self._clock_inputs()
        moved = machine - await self.now()
        self._reading = file_clock.ClockReading(boot, steady, machine, is_sure=True)
        await self._writer.run(partial(file_clock.store, self._reading))
        return moved

    def _clock_inputs(self) -> tuple[str, float, float]:
        return self._boot, file_clock.steady_seconds(), self._machine()

    def _clock(self) -> float:
        """Return the time: the last reading, and the seconds since then."""
        return self._reading.later(file_clock.steady_seconds())

    async def ping(self) -> None:
        try:
            await self._writer.run(self._probe)
        except OSError as error:
            raise self._file.explain(error) from error
        await self._rows("SELECT 1")

    def _probe(self, db: sqlite3.Connection) -> None:
        """Write to the catalog and to its disk. Raises `OSError`."""
        if self._path is not None:
            with closing(
                schema.connect(self._path)
            ) as fresh:  # a new connection sees a file that was replaced
                fresh.execute("SELECT count(*) FROM facts").fetchone()
        self._file.write_probe()
        db.execute("INSERT OR REPLACE INTO facts VALUES ('ping')")

    async def close(self) -> None:
        self._points.close()
        await self._reader.close()
        await self._writer.close()

    async def _rows(self, statement: str, values: Any = ()) -> list[Any]:
        return await self._reader.run(lambda db: db.execute(statement, values).fetchall())

    async def _write(self, statement: str, values: Any = ()) -> int:
        """Run a statement. Return the number of rows that it changed."""
        return await self._writer.run(lambda db: db.execute(statement, values).rowcount)
