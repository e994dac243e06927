"""Threads that own SQLite connections and run steps for tasks.

One thread writes. It runs many steps in one transaction, so one fsync is enough for all that waited. Other
threads read. This module knows nothing of tables.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from overspill_service.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overspill_service.catalog.sqlite.file import CatalogFile

T = TypeVar("T")

MAX_STEPS: Final = 256
"""Steps in one transaction."""
DEADLINE_SECONDS: Final = 30.0
"""Seconds that a caller waits for its step. A step that comes later may still be done."""
READ_TIMEOUT_SECONDS: Final = 5.0
"""Seconds after which a reading step is interrupted."""
INSTRUCTIONS_PER_CHECK: Final = 100_000
"""Instructions of SQLite's virtual machine between two checks of the time."""


class QueuedStep(NamedTuple):
    step: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    is_durable: bool


class StepOutcome(NamedTuple):
    future: asyncio.Future[Any]
    value: Any
    error: Exception | None


class Worker:
    """A queue of steps, and one thread for each connection."""

    def __init__(
        self, file: CatalogFile, connections: Sequence[sqlite3.Connection], name: str, *, writes: bool
    ) -> None:
        self._file, self._writes = file, writes
        self._queue: queue.SimpleQueue[QueuedStep | None] = queue.SimpleQueue()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(connection,), name=name, daemon=True)
            for connection in connections
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, step: Callable[[sqlite3.Connection], T], *, is_durable: bool = True) -> T:
        """Run the step, and return its result once its transaction is durable.

        Without `is_durable` it survives the end of this process, but perhaps not that of the machine. Raises
        `CatalogUnavailable`.
        """
        if self._is_closed:
            raise CatalogUnavailable("the catalog is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(QueuedStep(step, future, loop, is_durable))
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await future
        except TimeoutError as error:
            raise CatalogUnavailable("the catalog does not answer") from error

    async def close(self) -> None:
        """Finish the queued steps, end the threads, and close their connections."""
        if not self._is_closed:
            self._is_closed = True
            for _ in self._threads:
                self._queue.put(None)
            for thread in self._threads:
                await asyncio.to_thread(thread.join)

    def _serve(self, connection: sqlite3.Connection) -> None:
        while batch := self._take():
            outcomes = [self._with_explanation(outcome) for outcome in self._run(connection, batch)]
            for loop in {task.loop for task in batch}:
                own = [outcome for task, outcome in zip(batch, outcomes, strict=True) if task.loop is loop]
                with suppress(RuntimeError):  # the loop has ended, so nobody waits
                    loop.call_soon_threadsafe(_resolve, own)
        connection.close()

    def _run(self, connection: sqlite3.Connection, batch: Sequence[QueuedStep]) -> list[StepOutcome]:
        """Run the steps. None is acknowledged if the file was moved or replaced."""
        run = _transact if self._writes else _read
        try:
            self._file.require_usable()
            outcomes = run(connection, batch)
            self._file.require_usable(CatalogUnavailable)
        except CatalogUnavailable as error:
            return [StepOutcome(task.future, None, error) for task in batch]
        return outcomes

    def _with_explanation(self, outcome: StepOutcome) -> StepOutcome:
        """Return the outcome with an error that says what to do."""
        error = outcome.error
        if not isinstance(error, sqlite3.Error):
            return outcome
        explained = self._file.failure(error)
        explained.__cause__ = error
        return outcome._replace(error=explained)

    def _take(self) -> list[QueuedStep]:
        """Return the waiting tasks, at least one. Empty once the worker is closed."""
        batch: list[QueuedStep] = []
        task = self._queue.get()
        while task is not None:
            batch.append(task)
            if len(batch) == (MAX_STEPS if self._writes else 1):
                return batch
            try:
                task = self._queue.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)
        return batch


def _read(connection: sqlite3.Connection, batch: Sequence[QueuedStep]) -> list[StepOutcome]:
    # SQLite has no timeout for a query; it stops when the handler returns true.
    deadline = time.monotonic() + READ_TIMEOUT_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, INSTRUCTIONS_PER_CHECK)
    return [_outcome(connection, task) for task in batch]


def _transact(connection: sqlite3.Connection, batch: Sequence[QueuedStep]) -> list[StepOutcome]:
    """Run all steps in one transaction.

    A failed step is undone alone; if the storage fails, all steps fail.
    """
    outcomes = []
    waits_for_disk = any(task.is_durable for task in batch)
    try:
        connection.execute(f"PRAGMA synchronous = {'FULL' if waits_for_disk else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")  # lock now: a later upgrade of a read lock could fail
        for task in batch:
            connection.execute("SAVEPOINT step")
            outcome = _outcome(connection, task)
            if isinstance(outcome.error, sqlite3.Error):  # the storage failed, so no step may be acknowledged
                raise outcome.error
            if outcome.error is not None:  # the step refused, for example a quota: undo it alone
                connection.execute("ROLLBACK TO step")
            connection.execute("RELEASE step")
            outcomes.append(outcome)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to report
                connection.execute("ROLLBACK")
        return [StepOutcome(task.future, None, error) for task in batch]
    return outcomes


def _outcome(connection: sqlite3.Connection, task: QueuedStep) -> StepOutcome:
    try:
        return StepOutcome(task.future, task.step(connection), None)
    except Exception as error:  # noqa: BLE001  (it goes to the caller)
        return StepOutcome(task.future, None, error)


def _resolve(outcomes: Sequence[StepOutcome]) -> None:
    for future, value, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
