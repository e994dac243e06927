"""The steps of live captures on their tables. Each function is one step, as in `entry_steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.wire import State

from overspill_service.catalog.live import (
    MARK,
    MARK_MILLISECONDS,
    MARKS_BY_AGE,
    UNKNOWN,
    Append,
    Appended,
    AppendStatus,
    LiveRecord,
)
from overspill_service.catalog.quotas import Charge
from overspill_service.catalog.sqlite import entry_steps

if TYPE_CHECKING:
    import sqlite3

    from overspill_service.catalog.records import Entry

Name = tuple[str, str]
"""A tenant and a capture's id."""
MAX_NEWS: Final = 1000
NO_ROOM: Final = AppendStatus.CAPTURE_FULL, AppendStatus.TENANT_FULL
_OF: Final = "WHERE tenant = ? AND id = ?"


def open_buffer(name: Name, record: LiveRecord, only_of: Entry | None, db: sqlite3.Connection) -> bool:
    if only_of is not None:
        stored = entry_steps.stored_entry(*name, db)
        if stored is None or not stored.is_live or stored.upload != only_of.upload:
            return False
    offset = record.accepted
    row = (*name, record.producer, offset, offset, offset, record.reached, record.active, record.active)
    columns = "tenant, id, producer, accepted, durable, opened, reached, active, began"
    insert = f"INSERT OR IGNORE INTO live ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  (constants)
    return db.execute(insert, row).rowcount == 1


def doubt(name: Name, db: sqlite3.Connection) -> None:
    db.execute(f"UPDATE live SET reached = {UNKNOWN} {_OF} AND reached = 0", name)  # noqa: S608  (constants)


def append(name: Name, sent: Append, limit: int, tenant_limit: int, db: sqlite3.Connection) -> Appended:
    select = "SELECT producer, accepted, durable, ending, reached FROM live WHERE tenant = ? AND id = ?"
    row = db.execute(select, name).fetchone()
    if row is None:
        return Appended(AppendStatus.UNKNOWN)
    producer, accepted, durable, ending, reached = row
    if producer != sent.producer:
        return Appended(AppendStatus.OTHER_PRODUCER)
    status = _refusal(name, sent, accepted, durable, ending, (limit, tenant_limit), db)
    if status is not AppendStatus.DONE:
        if status is AppendStatus.WRONG_OFFSET and reached and sent.offset > max(accepted, reached):
            db.execute(f"UPDATE live SET reached = ? {_OF}", (sent.offset, *name))  # noqa: S608  (constants)
        if status in NO_ROOM:  # the producer is there all the same
            db.execute(f"UPDATE live SET active = max(active, ?) {_OF}", (sent.now, *name))  # noqa: S608  (constants)
        return Appended(status, accepted, durable)
    if sent.data:
        _mark(name, sent.now, accepted, db)
        db.execute("INSERT INTO live_bytes VALUES (?, ?, ?, ?)", (*name, accepted, sent.data))
    accepted += len(sent.data)
    reached = reached if reached > accepted else 0
    update = f"UPDATE live SET accepted = ?, active = max(active, ?), reached = ? {_OF}"  # noqa: S608  (constants)
    db.execute(update, (accepted, sent.now, reached, *name))
    if sent.data:
        _note_change(name, db)
    return Appended(AppendStatus.DONE, accepted, durable)


def _refusal(
    name: Name,
    sent: Append,
    accepted: int,
    durable: int,
    ending: bytes | None,
    limits: tuple[int, int],
    db: sqlite3.Connection,
) -> AppendStatus:
    if ending is not None:
        return AppendStatus.ENDED
    if sent.offset != accepted:
        return AppendStatus.WRONG_OFFSET
    if sent.data and accepted + len(sent.data) - durable > limits[0]:
        return AppendStatus.CAPTURE_FULL
    select = (  # from an index of those captures alone: a tenant may have thousands that are idle
        "SELECT coalesce(sum(accepted - durable), 0) FROM live WHERE tenant = ? AND accepted > durable"
    )
    if sent.data and db.execute(select, name[:1]).fetchone()[0] + len(sent.data) > limits[1]:
        return AppendStatus.TENANT_FULL
    return AppendStatus.DONE


def _mark(name: Name, now: float, offset: int, db: sqlite3.Connection) -> None:
    moment = round(now * 1000)
    began, marked = db.execute("SELECT began, marked FROM live WHERE tenant = ? AND id = ?", name).fetchone()
    if moment - marked < max(MARK_MILLISECONDS, (moment - began * 1000) / MARKS_BY_AGE):
        return
    # Concatenation gives text in SQLite, whatever it joins.
    update = "UPDATE live SET marks = CAST(marks || ? AS BLOB), marked = ? WHERE tenant = ? AND id = ?"
    db.execute(update, (MARK.pack(moment, offset), moment, *name))


def read(name: Name, since: int, limit: int | None, db: sqlite3.Connection) -> LiveRecord | None:
    select = (
        "SELECT producer, accepted, durable, active, cut, ending, marks, opened, reached FROM live "
        "WHERE tenant = ? AND id = ?"
    )
    row = db.execute(select, name).fetchone()
    if row is None:
        return None
    producer, accepted, durable, active, cut, ending, marks, opened, reached = row
    start = max(since, durable)
    is_too_much = limit is not None and accepted - start > limit
    return LiveRecord(
        producer=producer,
        accepted=accepted,
        start=start,
        durable=durable,
        active=active,
        opened=opened,
        reached=reached,
        cut=cut,
        ending=ending,
        buffer=b"" if is_too_much else _bytes_from(name, start, db),
        marks=marks,
    )


def _bytes_from(name: Name, start: int, db: sqlite3.Connection) -> bytes:
    pieces = db.execute(
        "SELECT start, data FROM live_bytes WHERE tenant = ? AND id = ? AND start + length(data) > ?"
        " ORDER BY start",
        (*name, start),
    ).fetchall()
    first = pieces[0][0] if pieces else start
    return b"".join(data for _, data in pieces)[start - first :]


def plan_cut(name: Name, end: int, db: sqlite3.Connection) -> int | None:
    db.execute("UPDATE live SET cut = coalesce(cut, ?) WHERE tenant = ? AND id = ?", (end, *name))
    row = db.execute("SELECT cut FROM live WHERE tenant = ? AND id = ?", name).fetchone()
    return None if row is None else int(row[0])


def end(name: Name, offset: int, ending: bytes, db: sqlite3.Connection) -> bool:
    update = f"UPDATE live SET ending = coalesce(ending, ?) {_OF} AND accepted = ?"  # noqa: S608  (constants)
    return db.execute(update, (ending, *name, offset)).rowcount == 1


def replace(old: Entry, new: Entry, db: sqlite3.Connection) -> Entry | None:
    stored = entry_steps.stored_entry(old.tenant, old.id, db)
    if stored is None or stored not in (old, new):
        return stored
    if stored == old != new and _has_ended_before(new, db):
        return stored
    if stored == old:
        entry_steps.insert(new, db)
        growth = [after - before for after, before in zip(new.charge, old.charge, strict=True)]
        entry_steps.count(new.tenant, Charge(*growth), 1, db)
    name = new.tenant, new.id
    if new.state is State.LIVE:
        _trim(name, new.size, db)
    else:
        forget(name, db)
        entry_steps.free(old.tenant, old.upload, db)
    return new


def _has_ended_before(grown: Entry, db: sqlite3.Connection) -> bool:
    """Return whether the end of a capture was told, and it would have more bytes than that."""
    select = f"SELECT 1 FROM live {_OF} AND ending IS NOT NULL AND accepted < ?"  # noqa: S608  (constants)
    row = db.execute(select, (grown.tenant, grown.id, grown.size)).fetchone()
    return grown.is_live and row is not None


def _trim(name: Name, durable: int, db: sqlite3.Connection) -> None:
    update = f"UPDATE live SET durable = ?, accepted = max(accepted, ?), cut = NULL {_OF}"  # noqa: S608
    db.execute(update, (durable, durable, *name))
    db.execute(f"DELETE FROM live_bytes {_OF} AND start + length(data) <= ?", (*name, durable))  # noqa: S608
    shorten = f"UPDATE live_bytes SET data = substr(data, 1 + ? - start), start = ? {_OF} AND start < ?"  # noqa: S608
    db.execute(shorten, (durable, durable, *name, durable))
    _note_change(name, db)


def forget(name: Name, db: sqlite3.Connection) -> None:
    for table in ("live", "live_bytes"):
        db.execute(f"DELETE FROM {table} {_OF}", name)  # noqa: S608  (constants)
    _note_change(name, db)


def _note_change(name: Name, db: sqlite3.Connection) -> None:
    """Leave news for other processes: the last `MAX_NEWS` changes."""
    latest = db.execute("INSERT INTO live_news (tenant, id) VALUES (?, ?)", name).lastrowid or 0
    db.execute("DELETE FROM live_news WHERE number <= ?", (latest - MAX_NEWS,))


def news(seen: int, db: sqlite3.Connection) -> tuple[int, list[Name] | None]:
    """Return the number of the last change, and what changed after `seen`. None: perhaps everything."""
    first, last = db.execute("SELECT min(number), max(number) FROM live_news").fetchone()
    if last is None or last <= seen:
        return last or 0, []
    if seen + 1 < first:
        return last, None
    return last, db.execute("SELECT DISTINCT tenant, id FROM live_news WHERE number > ?", (seen,)).fetchall()
