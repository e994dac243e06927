"""The catalog's tables, and how their file is opened.

Instants are seconds since the epoch. A row of `captures` is an entry or a tombstone. A tombstone has no
`created`, and its `expires` says when it is deleted.
"""

from __future__ import annotations

import atexit
import sqlite3
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from overspill_service.catalog.sqlite.file import ADVICE, CatalogFile, reason
from overspill_service.errors import CatalogUnavailable, ServiceError
from overspill_service.errors.system import failure
from overspill_service.resources.private_files import make_private

if TYPE_CHECKING:
    from pathlib import Path

BUSY_TIMEOUT_SECONDS: Final = 10.0
"""Seconds to wait for another process's write."""
BUSY_PAUSE_SECONDS: Final = 0.01

TABLES: Final = """
CREATE TABLE captures (
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    created     REAL,
    expires     REAL NOT NULL,
    state       TEXT,
    tool        TEXT,
    session     BLOB,             -- digest, NULL where there is none
    call_id     BLOB,             -- digest, NULL where there is none
    size        INTEGER,
    stored_size INTEGER,
    value       BLOB NOT NULL,
    metadata    INTEGER,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX captures_by_created  ON captures (tenant, created, id) WHERE created IS NOT NULL;
CREATE INDEX captures_by_session  ON captures (tenant, session, created, id) WHERE session IS NOT NULL;
CREATE INDEX captures_by_call     ON captures (tenant, call_id, created, id) WHERE call_id IS NOT NULL;
CREATE INDEX captures_by_tool     ON captures (tenant, tool, created, id) WHERE created IS NOT NULL;
CREATE INDEX captures_by_expiry   ON captures (tenant, expires, id) WHERE created IS NOT NULL;
CREATE INDEX captures_by_size     ON captures (tenant, size, id) WHERE created IS NOT NULL;
CREATE INDEX tombstones           ON captures (expires) WHERE created IS NULL;
CREATE INDEX tombstones_by_tenant ON captures (tenant, expires) WHERE created IS NULL;

CREATE TABLE totals (
    tenant      TEXT PRIMARY KEY,
    captures    INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    stored_size INTEGER NOT NULL,
    metadata    INTEGER NOT NULL DEFAULT 0,
    tombstones  INTEGER NOT NULL DEFAULT 0,
    readers     INTEGER NOT NULL DEFAULT 0  -- bytes of all readers
) WITHOUT ROWID;

CREATE TABLE readers (
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    value  BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE TABLE reservations (
    tenant      TEXT NOT NULL,
    upload      TEXT NOT NULL,
    size        INTEGER NOT NULL,
    stored_size INTEGER NOT NULL,
    until       REAL NOT NULL,
    captures    INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant, upload)
) WITHOUT ROWID;

CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE keys   (hash TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE uses   (hash TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE facts  (name TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE figures (            -- what processes tell each other
    name   TEXT NOT NULL,
    holder TEXT NOT NULL,
    figure REAL NOT NULL,
    until  REAL NOT NULL,
    PRIMARY KEY (name, holder)
) WITHOUT ROWID;
CREATE INDEX figures_by_end ON figures (until);

CREATE TABLE sums (
    tenant  TEXT NOT NULL,
    seconds INTEGER NOT NULL,     -- length of the bucket
    start   INTEGER NOT NULL,
    cell    TEXT NOT NULL,
    amount  INTEGER NOT NULL,
    PRIMARY KEY (tenant, seconds, start, cell)
) WITHOUT ROWID;
CREATE TABLE sum_sizes (
    tenant  TEXT NOT NULL,
    seconds INTEGER NOT NULL,     -- length of the bucket
    start   INTEGER NOT NULL,
    size    INTEGER NOT NULL,     -- bytes of its sums
    PRIMARY KEY (tenant, seconds, start)
) WITHOUT ROWID;
CREATE TABLE batches (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,      -- counts the tenant's batches
    until  REAL NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE INDEX batches_by_number ON batches (tenant, number);
CREATE INDEX batches_by_end    ON batches (until);
CREATE TABLE rollups (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    value  BLOB NOT NULL,
    until  REAL NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE INDEX rollups_by_end ON rollups (until);

CREATE TABLE backlogs (
    tenant   TEXT NOT NULL,
    spool    TEXT NOT NULL,
    captures INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    oldest   REAL NOT NULL,
    until    REAL NOT NULL,
    PRIMARY KEY (tenant, spool)
) WITHOUT ROWID;

CREATE TABLE live (
    tenant   TEXT NOT NULL,
    id       TEXT NOT NULL,
    producer TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    durable  INTEGER NOT NULL,
    opened   INTEGER NOT NULL,    -- where the buffer began
    active   REAL NOT NULL,
    began    REAL NOT NULL,
    cut      INTEGER,             -- the end of the segment that is being stored
    ending   BLOB,
    marked   INTEGER NOT NULL DEFAULT 0,  -- when the last mark was made, in ms
    marks    BLOB NOT NULL DEFAULT x'',
    reached  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX live_unstored ON live (tenant, accepted, durable) WHERE accepted > durable;
CREATE TABLE live_bytes (
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    start  INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (tenant, id, start)
);
CREATE TABLE live_due (
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    at     REAL NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX live_due_by_time ON live_due (at);
CREATE TABLE live_news (number INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, id TEXT NOT NULL);
"""
VERSION: Final = 13
"""The version of these tables, in `user_version`. No release has had an earlier one."""


def prepare(path: Path | None) -> tuple[CatalogFile, sqlite3.Connection]:
    """Return the file with the tables of this version, and a connection for writing. None: in memory.

    Raises `CatalogUnavailable` if the file cannot be used.
    """
    try:
        if path is not None:
            make_private(path)
        file = CatalogFile(path)
    except OSError as error:
        service_error = failure(error, f"the folder of the catalog file {path}")
        raise CatalogUnavailable(
            str(service_error or f"the catalog file {path} cannot be used: {error.strerror}")
        ) from error
    try:
        return file, _open(path)
    except sqlite3.Error as error:
        raise _refusal(file, path, error) from error


def connections(file: CatalogFile, path: Path, count: int) -> list[sqlite3.Connection]:
    """Return more connections to the file. Raises `CatalogUnavailable`, or what the system refuses."""
    connections: list[sqlite3.Connection] = []
    try:
        connections.extend(connect(path) for _ in range(count))
    except sqlite3.Error as error:
        refusal = _refusal(file, path, error)  # while what is open takes descriptors
        for each in connections:
            each.close()
        raise refusal from error
    return connections


def _refusal(file: CatalogFile, path: Path | None, error: sqlite3.Error) -> ServiceError:
    """Return what the system has refused to SQLite, which hides it, or else what SQLite says."""
    return file.refused(error) or CatalogUnavailable(f"{reason(error)} ({path})")


def _open(path: Path | None) -> sqlite3.Connection:
    connection = connect(path)
    try:
        if path is None:
            _without_captures().backup(connection)
        else:
            _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _without_captures() -> sqlite3.Connection:
    """Return a catalog in memory to copy: a hundredth of the time that its statements take."""
    connection = connect(None)
    atexit.register(connection.close)
    _create(connection)
    return connection


def connect(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path or ":memory:", timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")  # a commit is acknowledged, so it must be on the disk
        connection.execute("PRAGMA secure_delete = ON")  # what was removed is overwritten
        connection.execute("PRAGMA journal_size_limit = 67108864")  # cut the log after a burst of writes
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    _use_write_ahead_log(connection)
    connection.execute("BEGIN IMMEDIATE")  # of several processes that start at once, one creates the tables
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not version:
        for statement in TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    if version > VERSION:
        raise CatalogUnavailable(
            f"the catalog file is of version {version}, from a newer Overspill; this one reads {VERSION}"
        )
    if 0 < version < VERSION:
        raise CatalogUnavailable(f"the catalog file is from before the first release; {ADVICE}")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log.

    Several processes may do so at once, and SQLite does not wait here by itself.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_PAUSE_SECONDS)
        else:
            return
