"""The catalog in a file beyond the contract: many processes, and a disk that has changed."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog.live import Append, LiveRecord
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Query
from overspill_service.catalog.sqlite import listings, live_steps, schema, worker
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.errors import CatalogFull, CatalogRefuses, CatalogUnavailable, OutOfResources
from overspill_service.resources.quick_work import is_on_local_disk

from tests.contracts.entries import NOW, TENANT, entry, listed, rebuilt, tombstone
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from multiprocessing.synchronize import Barrier

ROOT = Path(__file__).parents[2]
PROCESSES = 3
SHARED = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "catalog.sqlite"


@pytest.fixture
async def catalog(path: Path) -> AsyncIterator[SqliteCatalog]:
    made = SqliteCatalog(path)
    yield made
    await made.close()


@pytest.fixture
def limited_files() -> Iterator[Callable[[int], None]]:
    """Limits the files of this process to so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


async def write(catalog: SqliteCatalog, statement: str) -> None:
    """Run a statement on the connection that writes."""
    await catalog._write(statement)


def test_the_file_is_for_its_owner_alone(path: Path) -> None:
    async def commit_one() -> list[int]:
        catalog = SqliteCatalog(path)
        await catalog.commit(entry(), Quota())
        modes = [found.stat().st_mode & 0o777 for found in path.parent.iterdir()]
        await catalog.close()
        return modes

    assert set(asyncio.run(commit_one())) == {0o600}


async def test_what_was_committed_is_there_after_closing(path: Path) -> None:
    before = SqliteCatalog(path)
    await before.commit(entry(), Quota())
    await rebuilt(before)
    await before.close()

    after = SqliteCatalog(path)
    assert await after.get(TENANT, entry().id) == entry()
    assert await after.is_complete()
    await after.close()


def _store_as(process: int, path: Path, together: Barrier) -> None:
    async def store() -> None:
        together.wait(60)
        catalog = SqliteCatalog(path)
        ours = [entry(number, upload=f"process-{process}") for number in range(SHARED)]
        ours += [entry(1000 * (process + 1) + number) for number in range(SHARED)]
        await asyncio.gather(*(catalog.commit(each, Quota()) for each in ours))
        await catalog.close()

    asyncio.run(store())


async def test_several_processes_share_one_file_from_its_creation_on(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(PROCESSES)
    processes = [context.Process(target=_store_as, args=(n, path, together)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join, 60)

    assert [process.exitcode for process in processes] == [0] * PROCESSES
    catalog = SqliteCatalog(path)
    entries = await listed(catalog, Query(), limit=1000)
    totals = await catalog.totals(TENANT)
    await catalog.close()
    assert len(entries) == totals.captures == SHARED + PROCESSES * SHARED
    assert totals.stored_size == sum(each.stored_size for each in entries)


COMMIT_FOR_EVER = """
import asyncio, itertools, sys
from pathlib import Path
from overspill_service.catalog.live import Append, LiveRecord
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from tests.contracts.entries import entry

async def main():
    catalog = SqliteCatalog(Path(sys.argv[1]))
    for start in itertools.count(step=8):
        await asyncio.gather(*(catalog.commit(entry(start + n), Quota()) for n in range(8)))
        print(start + 8, flush=True)

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COMMIT_FOR_EVER, path, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(5):
        acknowledged = int(await process.stdout.readline())
    process.kill()
    rest = (await process.stdout.read()).split()
    acknowledged = int(rest[-1]) if rest else acknowledged
    await process.wait()

    catalog = SqliteCatalog(path)
    entries = await listed(catalog, Query(), limit=1000)
    totals = await catalog.totals(TENANT)
    await catalog.close()
    assert [each.id for each in entries[-acknowledged:]] == [
        entry(n).id for n in reversed(range(acknowledged))
    ]
    assert totals.captures == len(entries)


async def test_a_file_from_before_the_first_release_is_refused_with_what_to_do(path: Path) -> None:
    await SqliteCatalog(path).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 1")

    with pytest.raises(CatalogUnavailable, match="from before the first release; stop the service, move it"):
        SqliteCatalog(path)


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    await SqliteCatalog(path).close()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()

    with pytest.raises(
        CatalogUnavailable, match=f"version 99, from a newer Overspill; this one reads {schema.VERSION}"
    ):
        SqliteCatalog(path)


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to have a header " * 100)

    with pytest.raises(CatalogUnavailable, match="not an SQLite database"):
        SqliteCatalog(path)


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CatalogUnavailable, match="cannot be used"):
        SqliteCatalog(tmp_path / "file" / "catalog.sqlite")


async def test_a_full_disk_refuses_the_write_says_so_and_keeps_the_rest(
    catalog: SqliteCatalog, path: Path
) -> None:
    await catalog.commit(entry(1), Quota())
    await write(catalog, "PRAGMA max_page_count = 1")  # SQLite's own limit stands in for the disk's

    with pytest.raises(CatalogUnavailable, match="disk that holds the catalog is full") as caught:
        await catalog.commit(entry(2, index=b"x" * 500_000), Quota())

    assert str(path) not in str(caught.value)
    assert await catalog.get(TENANT, entry(1).id) == entry(1)
    assert (await catalog.totals(TENANT)).captures == 1
    await catalog.amend(entry(1), expires=NOW, marker=None)


async def test_a_file_that_became_read_only_is_reported_by_ping(catalog: SqliteCatalog) -> None:
    await catalog._writer.run(lambda db: db.execute("PRAGMA query_only = 1"))

    with pytest.raises(CatalogUnavailable, match="read-only"):
        await catalog.ping()


async def test_a_write_that_fails_undoes_itself_and_nothing_else_of_its_batch(catalog: SqliteCatalog) -> None:
    await rebuilt(catalog)
    commits = [catalog.commit(entry(number), Quota(captures=5 if number % 2 else 0)) for number in range(20)]
    results = await asyncio.gather(*commits, return_exceptions=True)

    committed = [each for each in results if not isinstance(each, BaseException)]
    assert (await catalog.totals(TENANT)).captures == len(committed) >= 10
    assert len(await listed(catalog, Query())) == len(committed)


async def test_a_damaged_entry_is_reported_and_not_taken_for_absent(catalog: SqliteCatalog) -> None:
    await catalog.commit(entry(), Quota())
    await write(catalog, "UPDATE captures SET value = x'45c1'")

    with pytest.raises(CatalogUnavailable, match="entry of a capture that cannot be decoded"):
        await catalog.get(TENANT, entry().id)


async def test_tombstones_are_cleared_away_once_their_time_is_over(path: Path) -> None:
    machine = [NOW]
    catalog = SqliteCatalog(path, lambda: machine[0])
    for number in range(2):
        await catalog.commit(entry(number), Quota())
    await catalog.remove(entry(0), tombstone(entry(0)), keep=30)
    assert await catalog.get(TENANT, entry(0).id) == tombstone(entry(0))

    machine[0] += 50
    await catalog.now()
    await catalog.remove(entry(1), tombstone(entry(1)), keep=30)
    rows = await catalog._rows("SELECT id FROM captures")
    await catalog.close()
    assert rows == [(entry(1).id,)]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (Query(), "captures_by_created"),
        (Query(tool="x"), "captures_by_tool"),
        (Query(since=1.0, until=2.0), "captures_by_created"),
        (Query(session="s"), "captures_by_session"),
        (Query(call_id="c"), "captures_by_call"),
    ],
)
async def test_every_listing_walks_an_index_in_order(
    catalog: SqliteCatalog, query: Query, index: str
) -> None:
    plans: list[str] = []

    def explain(db: sqlite3.Connection) -> None:
        db.set_trace_callback(plans.append)

    await catalog.commit(entry(), Quota())
    await catalog._reader.close()
    catalog._reader = catalog._writer  # one connection, whose statements can be watched
    await catalog._writer.run(explain)
    await catalog.find(TENANT, query, now=NOW, limit=10)
    await catalog._writer.run(lambda db: db.set_trace_callback(None))
    statement = next(text for text in plans if text.startswith("SELECT created, id"))
    plan = " ".join(row[3] for row in await catalog._rows(f"EXPLAIN QUERY PLAN {statement}"))

    assert index in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("query", [Query(session="session-1", tool="rare"), Query(state=wire.State.PARTIAL)])
async def test_a_filter_that_few_meet_lets_other_steps_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    monkeypatch.setattr(listings, "MAX_SCANNED", 10)
    catalog = SqliteCatalog(path)
    wanted = entry(0, tool="rare", state=wire.State.PARTIAL)
    await asyncio.gather(*(catalog.commit(each, Quota()) for each in [wanted, *map(entry, range(1, 96))]))
    steps: list[str] = []
    await catalog._reader.close()
    catalog._reader = catalog._writer  # one connection, whose statements can be watched
    await catalog._writer.run(lambda db: db.set_trace_callback(steps.append))
    found = await listed(catalog, query, limit=5)
    await catalog._writer.run(lambda db: db.set_trace_callback(None))
    await catalog.close()

    assert found == [wanted]
    assert len([each for each in steps if each.startswith("SELECT created, id")]) == 10


async def test_a_closed_catalog_says_so(path: Path) -> None:
    catalog = SqliteCatalog(path)
    await catalog.close()

    with pytest.raises(CatalogUnavailable, match="closed"):
        await catalog.ping()


def test_the_busy_time_is_shorter_than_a_callers_patience() -> None:
    assert schema.BUSY_TIMEOUT_SECONDS < worker.DEADLINE_SECONDS


async def test_a_generation_stays_until_the_next_and_tells_whether_captures_came(path: Path) -> None:
    first = SqliteCatalog(path)
    await rebuilt(first)
    await first.begin_generation("one", is_closed=False)
    before = await first.generation()
    await first.commit(entry(), Quota())
    after = await first.generation()
    await first.close()
    second = SqliteCatalog(path)

    assert (before.name, after.name, before.is_closed) == ("one", "one", False)
    assert before.state != after.state
    assert await second.generation() == after
    await second.doubt(is_older=False)
    assert (await second.is_complete(), await second.is_rebuild_due()) == (True, True)
    await second.doubt(is_older=True)
    assert (await second.is_complete(), await second.is_rebuild_due()) == (False, True)
    await rebuilt(second)
    assert (await second.is_complete(), await second.is_rebuild_due()) == (True, False)
    await second.close()


@pytest.mark.parametrize("stands_in", [False, True], ids=["moved", "replaced"])
async def test_a_file_that_is_moved_away_takes_no_more_entries_until_it_is_back(
    catalog: SqliteCatalog, path: Path, *, stands_in: bool
) -> None:
    await catalog.commit(entry(1), Quota())
    away = path.with_name("away")
    path.rename(away)
    if stands_in:
        path.write_bytes(away.read_bytes())
    for attempt in (catalog.commit(entry(2), Quota()), catalog.get(TENANT, entry(1).id), catalog.ping()):
        with pytest.raises(CatalogRefuses, match="moved away or replaced"):
            await attempt

    away.replace(path)
    assert await catalog.get(entry(2).tenant, entry(2).id) is None
    await catalog.ping()


async def test_a_file_that_is_overwritten_is_noticed_and_takes_no_more_entries(
    catalog: SqliteCatalog, path: Path
) -> None:
    await catalog.commit(entry(1), Quota())
    await catalog._rows("PRAGMA wal_checkpoint(TRUNCATE)")  # until then the log has all pages
    with path.open("r+b") as file:
        file.write(bytes(range(256)) * (path.stat().st_size // 256))
    with pytest.raises(CatalogRefuses, match="rebuilt from the object store"):
        await catalog.ping()

    with pytest.raises(CatalogRefuses, match="rebuilt from the object store"):
        await catalog.commit(entry(2), Quota())


async def test_a_catalog_that_cannot_grow_says_so_before_it_has_to(
    catalog: SqliteCatalog, limited_files: Callable[[int], None], path: Path
) -> None:
    limited_files(path.stat().st_size + 2**19)
    with pytest.raises(CatalogFull, match="limit on the size of files"):
        await catalog.ping()


# --- reads on the event loop ------------------------------------------------------------------------


async def test_a_record_is_found_without_a_thread_as_it_was_committed_last(path: Path) -> None:
    if not is_on_local_disk(path):
        pytest.skip("nothing tells here that the file is on a disk of this machine")
    catalog = SqliteCatalog(path)
    await catalog.commit(entry(), Quota())
    await catalog.amend(entry(), expires=NOW + 99_999, marker="marker")
    reading = catalog.get(TENANT, entry().id)
    with pytest.raises(StopIteration) as answered:  # it does not even let others run in between
        reading.send(None)
    await catalog.close()

    assert answered.value.value == replace(entry(), expires=NOW + 99_999, marker="marker")


async def test_a_read_that_another_process_holds_up_is_done_by_a_thread(path: Path) -> None:
    catalog = SqliteCatalog(path)
    await catalog.commit(entry(), Quota())

    def busy(_: sqlite3.Connection) -> str:
        raise sqlite3.OperationalError("database is locked")

    async def in_a_thread(step: object) -> str:
        return "read by a thread"

    points = catalog._points
    points._threads.run = in_a_thread  # type: ignore[assignment, method-assign]
    first = await points.run(busy)

    assert first == "read by a thread"
    assert not points._quick.is_allowed
    await catalog.close()


@pytest.mark.parametrize("failure", [OutOfResources("no descriptor is free"), ValueError("not expected")])
async def test_news_of_another_process_come_also_after_a_failure_of_any_kind(
    catalog: SqliteCatalog, path: Path, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, failed, told = live_steps.news, asyncio.Event(), asyncio.Event()

    def fail_once(seen: int, db: sqlite3.Connection) -> tuple[int, list[live_steps.Name] | None]:
        if failed.is_set():
            return ask(seen, db)
        failed.set()
        raise failure

    monkeypatch.setattr(live_steps, "news", fail_once)
    await catalog.watch(TENANT, entry().id, lambda *_: told.set())
    await failed.wait()
    other = SqliteCatalog(path)
    await other.open_live(
        TENANT, entry().id, LiveRecord(producer="me", accepted=0, start=0, durable=0, active=NOW)
    )
    await other.append_live(TENANT, entry().id, Append("me", 0, b"x", NOW), limit=1, tenant_limit=1)
    await other.close()

    async with asyncio.timeout(PATIENCE):
        await told.wait()
