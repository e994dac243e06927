"""Listings of the SQLite catalog: pages by the most selective index, in steps that take a moment each.

An index finds captures by one filter. If the query has other filters, each capture that the index finds is
looked at. One step looks at `MAX_SCANNED` of them. So a filter that few captures meet holds up no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill_service.catalog import encoding

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from overspill_service.catalog.records import Entry, Query

MAX_SCANNED: Final = 10_000
"""Captures that one step looks at: some ten milliseconds."""
_ALWAYS: Final = ("tenant = :tenant", "created IS NOT NULL")
_EXACT: Final = {"session": "session", "call_id": "call", "tool": "tool"}
"""The filters that have an index, and the ends of the indexes' names."""
_OTHERS: Final = {
    "state": "state = :state",
    "since": "created >= :since",
    "until": "created < :until",
}


class Selection(NamedTuple):
    """A query in SQL. The index finds what `where` says. Each row is looked at for what `filters` says."""

    indexed_by: str
    where: list[str]
    filters: list[str]
    values: dict[str, Any]


class Step(NamedTuple):
    """The end of one step: where it stopped, None at the end of the listing, and whether the page is full."""

    position: bytes | None
    is_full: bool


def selection(tenant: str, query: Query, now: float) -> Selection:
    """Return the SQL of a query. SQLite's own choice of an index may walk by expiry and sort everything."""
    filter_name = next((name for name in ("call_id", "session", "tool") if getattr(query, name)), None)
    index = "captures_by_created" if filter_name is None else f"captures_by_{_EXACT[filter_name]}"
    where, filters = [*_ALWAYS], ["expires > :now"]
    values: dict[str, Any] = {"tenant": tenant, "now": now}
    for name in _EXACT:
        text = getattr(query, name)
        if text is not None:
            if name == filter_name:
                where.append(f"{name} = :{name}")
            else:
                filters.append(f"{name} IS :{name}")
            values[name] = text if name == "tool" else encoding.digest(text) if text else None
    for name, condition in _OTHERS.items():
        if (value := getattr(query, name)) is not None:
            (filters if name == "state" else where).append(condition)
            values[name] = value
    return Selection(index, where, filters, values)


def step(
    damaged: encoding.SkippedRecords,
    page: encoding.Page,
    selected: Selection,
    after: bytes | None,
    db: sqlite3.Connection,
) -> Step:
    """Look at the next captures after a position, and add to the page those that the query selects."""
    where, values = [*selected.where], dict(selected.values)
    if after is not None:
        where.append("(created, id) < (:after, :after_id)")
        values["after"], values["after_id"] = encoding.instant_of(after), encoding.capture_of(after)
    rows = db.execute(
        f"SELECT created, id, CASE WHEN {' AND '.join(selected.filters)} THEN value END"  # noqa: S608
        f" FROM captures INDEXED BY {selected.indexed_by} WHERE {' AND '.join(where)}"
        f" ORDER BY created DESC, id DESC LIMIT {MAX_SCANNED}",
        values,
    )
    scanned = 0
    for scanned, (created, capture, value) in enumerate(rows, 1):  # noqa: B007
        entry = damaged.entry(selected.values["tenant"], capture, value)
        if entry is not None and not page.add(entry):
            return Step(after, is_full=True)
        after = encoding.position(created, capture)
    return Step(after if scanned == MAX_SCANNED else None, is_full=False)


def largest(
    damaged: encoding.SkippedRecords, tenant: str, now: float, limit: int, db: sqlite3.Connection
) -> list[Entry]:
    """Return the largest captures, of those that have not expired among the `MAX_SCANNED` largest."""
    rows = db.execute(
        "SELECT id, CASE WHEN expires > ? THEN value END FROM captures INDEXED BY captures_by_size"
        " WHERE tenant = ? AND created IS NOT NULL ORDER BY size DESC, id DESC LIMIT ?",
        (now, tenant, MAX_SCANNED),
    )
    return _first_page(damaged, tenant, limit, rows)


def expired(
    damaged: encoding.SkippedRecords, tenant: str, now: float, limit: int, db: sqlite3.Connection
) -> list[Entry]:
    """Return the captures that have expired, the earliest first."""
    rows = db.execute(
        "SELECT id, value FROM captures WHERE tenant = ? AND created IS NOT NULL AND expires <= ?"
        " ORDER BY expires, id",
        (tenant, now),
    )
    return _first_page(damaged, tenant, limit, rows)


def _first_page(
    damaged: encoding.SkippedRecords, tenant: str, limit: int, rows: Iterable[tuple[str, bytes | None]]
) -> list[Entry]:
    page = encoding.Page(limit)
    for capture, value in rows:
        entry = damaged.entry(tenant, capture, value)
        if entry is not None and not page.add(entry):
            break
    return page.entries
