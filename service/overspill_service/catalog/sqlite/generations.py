"""What the catalog file says of itself: whether it is complete, and its generation.

Rows of `facts`:

    complete                    a rebuild has ended
    unverified                  a rebuild should run, though nothing is known to be missing
    generation:NAME:open        the generation; entries may have been recorded since it began
    generation:NAME:closed      the generation; its last process has stopped
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.catalog.records import Generation

if TYPE_CHECKING:
    import sqlite3

_GENERATIONS: Final = "generation:%"


def is_rebuild_due(db: sqlite3.Connection) -> bool:
    known = {
        name for (name,) in db.execute("SELECT name FROM facts WHERE name IN ('complete', 'unverified')")
    }
    return known != {"complete"}


def mark_complete(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR IGNORE INTO facts VALUES ('complete')")
    db.execute("DELETE FROM facts WHERE name = 'unverified'")


def doubt(is_older: bool, db: sqlite3.Connection) -> None:  # noqa: FBT001  (one of a step's parameters)
    db.execute("INSERT OR IGNORE INTO facts VALUES ('unverified')")
    if is_older:
        db.execute("DELETE FROM facts WHERE name = 'complete'")


def generation(db: sqlite3.Connection) -> Generation:
    row = db.execute("SELECT name FROM facts WHERE name LIKE ?", (_GENERATIONS,)).fetchone()
    _, name, end = row[0].split(":") if row else ("", "", "")
    newest, captures = db.execute(
        "SELECT (SELECT max(rowid) FROM captures), (SELECT sum(captures) FROM totals)"
    ).fetchone()
    return Generation(name=name, is_closed=end == "closed", state=f"{newest} {captures}")


def begin(name: str, is_closed: bool, db: sqlite3.Connection) -> None:  # noqa: FBT001  (as above)
    db.execute("DELETE FROM facts WHERE name LIKE ?", (_GENERATIONS,))
    db.execute("INSERT INTO facts VALUES (?)", (f"generation:{name}:{'closed' if is_closed else 'open'}",))
