"""The catalog in one SQLite file: durable on one machine, for any number of processes on it.

The file must be on a local disk: SQLite's write-ahead log does not work over a network.
"""

from __future__ import annotations

from overspill_service.catalog.sqlite.backlogs import SqliteBacklogs
from overspill_service.catalog.sqlite.coordination import SqliteCoordination
from overspill_service.catalog.sqlite.entries import SqliteEntries
from overspill_service.catalog.sqlite.key_store import SqliteKeyStore
from overspill_service.catalog.sqlite.ledger import SqliteLedger
from overspill_service.catalog.sqlite.live import SqliteLive
from overspill_service.catalog.sqlite.readers import SqliteReaders
from overspill_service.catalog.sqlite.statistics import SqliteStatistics


class SqliteCatalog(
    SqliteEntries,
    SqliteReaders,
    SqliteLedger,
    SqliteCoordination,
    SqliteKeyStore,
    SqliteStatistics,
    SqliteBacklogs,
    SqliteLive,
):
    """The whole port. Each part of it is a class of its own, over one file."""
