"""Outputs that the service does not take: spooled while an agent waits, uploaded later, never lost."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import Client, Guard, SyncClient, errors
from overspill.delivery.storage import Storage
from overspill.guard.band import Band
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.single_values import TextShape
from overspill.spools import flush, own_directory
from overspill.spools.entries import Spooled
from overspill.spools.flush import Flushed
from overspill.spools.folder import Folder
from overspill.spools.order import Order
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool
from overspill.spools.store_request import Origin, StoreRequest
from overspill.spools.workspace import Workspace
from overspill.wire import Outcome
from overspill_service.tenants.keys import hash_key

from tests.client.shell import Shell, printed_by, running_code
from tests.client.spooling import put, put_sync, spilled
from tests.servers.overspill import clean_environment
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.servers.overspill import ServiceProcess

LOG: Final = "".join(f"2026-11-01 12:00:00 request {number} served\n" for number in range(3_000))
NOWHERE: Final = "http://127.0.0.1:1"
PATIENCE: Final = 60.0


@pytest.fixture(autouse=True)
def spool_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


@pytest.fixture
def new_storage() -> Iterator[Callable[..., Storage]]:
    """Storages that are closed in the end."""
    made: list[Storage] = []

    def new(client: Client | SyncClient | None, **options: Any) -> Storage:
        made.append(Storage(client, **options))
        return made[-1]

    yield new
    for storage in made:
        storage.close()


def under(policy: Policy, call_id: str = "call_1", session: str = "") -> StoreRequest:
    """A request to store the log under this policy."""
    return Spill.of(TextShape(LOG), policy, Origin("build", call_id, session, "exit 1")).request


SHORTLY: Final = Policy(wait=1.0)


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """A server that takes every connection and never answers."""
    connections: list[asyncio.StreamWriter] = []

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for writer in connections:
            writer.close()


# --- into the spool ---


async def test_a_service_that_is_not_there_leaves_the_output_in_the_spool(
    new_storage: Callable[..., Storage],
) -> None:
    async with Client(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        spill = spilled(LOG)
        kept = await put(storage, spill)

    assert kept.outcome is Outcome.SPOOLED
    assert kept.reason == f"{NOWHERE} cannot be reached: connection refused"
    assert kept.expires is not None
    assert storage.partition is not None
    entry = storage.partition.find(spill.id)
    assert entry is not None
    with storage.partition.open(entry) as file:
        assert file.read() == LOG.encode()


def test_without_an_event_loop_too(new_storage: Callable[..., Storage]) -> None:
    with SyncClient(NOWHERE, retries=0) as client:
        kept = put_sync(new_storage(client), spilled(LOG))

    assert kept.outcome is Outcome.SPOOLED


async def test_a_silent_service_costs_its_deadline_once(
    silent: str, new_storage: Callable[..., Storage]
) -> None:
    async with Client(silent, retries=0) as client:
        storage = new_storage(client)
        first = await put(storage, under(SHORTLY))
        second = await put(storage, under(Policy(wait=3600.0), call_id="call_2"))

    assert first.reason == "the service did not store it within 1 s"
    assert second.outcome is Outcome.SPOOLED
    assert second.reason.startswith("the service has failed since 20")
    assert second.reason.endswith(": the service did not store it within 1 s")


async def test_many_outputs_at_once_of_a_service_that_is_away_are_all_spooled(
    new_storage: Callable[..., Storage],
) -> None:
    async with Client(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        spills = [spilled(LOG, f"call_{number}") for number in range(40)]
        kept = await asyncio.gather(*[put(storage, spill) for spill in spills])

    assert {each.outcome for each in kept} == {Outcome.SPOOLED}
    assert storage.partition is not None
    assert {entry.id for entry in storage.partition.entries()} == {spill.id for spill in spills}


async def test_a_burst_of_hundreds_of_outputs_loses_none(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "burst")
    async with Client(NOWHERE, retries=0) as client:
        guard = Guard(client, Policy(max_bytes=5_000, preview_bytes=500), spool=spool)
        texts = [f"{number}\n" + LOG[:8_000] for number in range(250)]
        guarded = await asyncio.gather(*[guard.process(text, tool="t") for text in texts])
        await guard.aclose()

    assert {each.outcome for each in guarded} == {Outcome.SPOOLED}
    assert {entry.id for entry in spool.partitions()[0].entries()} == {each.capture for each in guarded}


def test_spills_that_are_kept_together_share_their_waits_for_the_names_and_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    locks: list[Path] = []
    sync, locked = Folder.sync, own_directory.locked

    def counted(folder: Folder) -> None:
        synced.append(folder.path)
        sync(folder)

    def noted(path: Path, *arguments: float, **settings: bool) -> AbstractContextManager[int]:
        locks.append(path)
        return locked(path, *arguments, **settings)

    partition = Spool(tmp_path / "together").partition(NOWHERE, "")
    partition.keep(spilled(LOG, "before"), "down")
    monkeypatch.setattr(Folder, "sync", counted)
    monkeypatch.setattr(own_directory, "locked", noted)
    orders = [Order(spilled(LOG, f"call_{number}"), "down", "", lambda *_: None) for number in range(20)]
    kept = partition.keep_all(orders, on_progress=lambda: None)

    assert {entry.id for entry in partition.entries()} >= {order.request.id for order in orders}
    assert all(isinstance(each, Spooled) for each in kept)
    assert len(synced) == 1
    assert len(locks) == 2  # to make the files, and to give them their names


@pytest.mark.usefixtures("spool_path")
async def test_an_output_in_the_spool_is_not_kept_in_memory_by_a_cycle(
    new_storage: Callable[..., Storage],
) -> None:
    gc.collect()
    gc.disable()
    try:
        async with Client(NOWHERE, retries=0) as client:
            stored = await put(new_storage(client), spilled(LOG, "of a cycle"))

        assert stored.outcome is Outcome.SPOOLED
        assert until(lambda: not any(type(each) is Order for each in gc.get_objects()))
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_spool")
async def test_without_a_spool_the_reason_says_why_and_the_service_is_tried_again_soon(
    new_storage: Callable[..., Storage],
) -> None:
    async with Client(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        kept = [await put(storage, spilled(LOG, f"call_{number}")) for number in range(3)]

    assert {each.outcome for each in kept} == {Outcome.TRUNCATED}
    assert "cannot be reached: connection refused" in kept[2].reason
    assert kept[2].reason.startswith("the service has failed since")


async def test_where_neither_takes_it_both_reasons_are_given(
    spool_path: Path, new_storage: Callable[..., Storage]
) -> None:
    spool_path.mkdir(mode=0o777)
    spool_path.chmod(0o777)
    async with Client(NOWHERE, retries=0) as client:
        kept = await put(new_storage(client), spilled(LOG))

    assert kept == StoreResult(
        outcome=Outcome.TRUNCATED,
        reason=f"{NOWHERE} cannot be reached: connection refused; other users can write to the local spool "
        f"{spool_path}: chmod 700 makes it safe",
    )


@pytest.mark.parametrize("places", [("spool",), ("spool", "service")])
async def test_a_band_may_put_the_spool_first(
    service: ServiceProcess, new_storage: Callable[..., Storage], places: Any
) -> None:
    policy = Policy(bands=(Band(destinations=places),))
    async with Client(service.url) as client:
        kept = await put(new_storage(client), under(policy, session="spool-first"))

    assert (kept.outcome, kept.reason) == (Outcome.SPOOLED, "")


async def test_a_band_without_places_stores_nothing(
    service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    async with Client(service.url) as client:
        kept = await put(new_storage(client), under(Policy(bands=(Band(destinations=()),))))

    assert kept == StoreResult(outcome=Outcome.TRUNCATED, reason="outputs of this size are not to be stored")


async def test_a_refusal_of_one_capture_is_spooled_and_leaves_the_service_in_use(
    own_service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    own_service.restart(max_capture_size=10_000)
    async with Client(own_service.url) as client:
        storage = new_storage(client)
        large = [await put(storage, spilled(LOG, f"call_{number}")) for number in range(3)]
        small = await put(storage, spilled("small\n" * 100))

    assert {each.outcome for each in large} == {Outcome.SPOOLED}
    assert "capture_too_large" in large[0].reason
    assert small.outcome is Outcome.CAPTURED
    assert storage.partition is not None
    assert all("capture_too_large" in entry.refused for entry in storage.partition.entries())


async def test_a_wrong_key_is_a_reason_and_leaves_the_service_in_use(
    own_service: ServiceProcess, tmp_path: Path, new_storage: Callable[..., Storage]
) -> None:
    own_service.restart(tenants=tenants_file(tmp_path, KEY))
    async with Client(own_service.url, "ovs_" + "b" * 32) as client:
        storage = new_storage(client)
        kept = [await put(storage, spilled(LOG, f"call_{number}")) for number in range(3)]

    assert {each.outcome for each in kept} == {Outcome.SPOOLED}
    assert all("unauthorized, HTTP 401" in each.reason for each in kept)
    assert storage.health is not None
    assert not storage.health.circuit.is_open


def test_what_waited_for_a_key_is_uploaded_with_another_only_when_asked_to(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    own_service.restart(tenants=tenants_file(tmp_path, KEY))
    partition = spooled_for(own_service.url, spilled(LOG, session="keys"), key="ovs_" + "b" * 32)
    shell = Shell(own_service.url, OVERSPILL_KEY=KEY, OVERSPILL_SPOOL=str(partition.spool.path))
    own = shell("spool", "flush")
    kept = len(partition.entries())
    everything = shell("spool", "flush", "--all")

    assert (own.code, kept, own.err) == (0, 1, "overspill: uploaded 0 captures, 0 bytes\n")
    assert (everything.code, partition.entries()) == (0, [])
    assert "uploaded 1 capture" in everything.err


KEY: Final = "ovs_" + "a" * 32 + "g3yussy"


def tenants_file(folder: Path, key: str) -> Path:
    """One tenant that has this key, for the service's settings."""
    path = folder / "tenants.toml"
    key_table = f'[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["write", "read"]\n'
    path.write_text(f'[[tenants]]\nname = "mine"\n{key_table}')
    return path


async def test_cancelled_half_way_nothing_half_is_left(
    silent: str, spool_path: Path, new_storage: Callable[..., Storage]
) -> None:
    async with Client(silent, retries=0) as client:
        storage = new_storage(client)
        task = asyncio.create_task(put(storage, under(Policy(wait=3600.0))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert not spool_path.exists()


async def test_several_event_loops_and_threads_share_a_storage(new_storage: Callable[..., Storage]) -> None:
    with SyncClient(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        kept: list[StoreResult] = []

        def in_a_loop(number: int) -> None:
            kept.append(asyncio.run(put(storage, spilled(LOG, f"loop_{number}"))))

        def in_a_thread(number: int) -> None:
            kept.append(put_sync(storage, spilled(LOG, f"thread_{number}")))

        threads = [
            threading.Thread(target=target, args=[number])
            for number in range(6)
            for target in (in_a_loop, in_a_thread)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    assert [each.outcome for each in kept] == [Outcome.SPOOLED] * 12


async def test_an_asynchronous_client_stores_for_other_event_loops_too(
    service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    async with Client(service.url) as client:
        storage = new_storage(client)
        here = await put(storage, spilled(LOG, "here", session="loops"))
        there = await asyncio.to_thread(asyncio.run, put(storage, spilled(LOG, "there", session="loops")))

    assert (here.outcome, there.outcome) == (Outcome.CAPTURED, Outcome.CAPTURED)


def test_a_forked_child_spools_and_its_parent_still_does(new_storage: Callable[..., Storage]) -> None:
    with SyncClient(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        put_sync(storage, spilled(LOG, "before"))
        child = os.fork()
        if child == 0:
            os._exit(0 if put_sync(storage, spilled(LOG, "child")).outcome is Outcome.SPOOLED else 1)
        kept = put_sync(storage, spilled(LOG, "parent"))
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert kept.outcome is Outcome.SPOOLED
    assert storage.partition is not None
    assert {entry.call_id for entry in storage.partition.entries()} == {"before", "child", "parent"}


# --- out of it again ---


def spooled_for(url: str, spill: StoreRequest, *, key: str = "", reason: str = "down") -> Partition:
    partition = Spool().partition(url, key)
    partition.keep(spill, reason)
    return partition


def test_flush_uploads_with_the_same_id_and_all_that_was_known(service: ServiceProcess) -> None:
    spill = spilled(LOG, "call_7", session="flushed", tool="grep_search", ttl=600)
    partition = spooled_for(service.url, spill)
    with SyncClient(service.url) as client:
        flushed = flush.flush(partition, client)
        entry = client.get(spill.id)
        content = client.content(spill.id)

    assert flushed == Flushed(uploaded=1, size=spill.size)
    assert (entry.session, entry.call_id, entry.tool, entry.status) == (
        "flushed",
        "call_7",
        "grep_search",
        "exit 1",
    )
    assert content == LOG.encode()
    assert entry.expires <= datetime.now(UTC) + timedelta(seconds=601)
    assert partition.entries() == []


def test_flushing_what_the_service_has_already_changes_nothing(service: ServiceProcess) -> None:
    spill = spilled(LOG, session="twice")
    with SyncClient(service.url) as client:
        client.put(LOG, id=spill.id, session="twice", call_id="call_1")
        partition = spooled_for(service.url, spill)
        flushed = flush.flush(partition, client)

        assert len(client.list(session="twice").captures) == 1
    assert flushed.uploaded == 1
    assert partition.entries() == []


def test_what_the_service_refuses_for_good_is_kept_with_the_reason_and_not_sent_again(
    own_service: ServiceProcess,
) -> None:
    own_service.restart(max_capture_size=10_000)
    partition = spooled_for(own_service.url, spilled(LOG, "large"))
    partition.keep(spilled("small\n", "small"), "down")
    with SyncClient(own_service.url) as client:
        first = flush.flush(partition, client)
        second = flush.flush(partition, client)

    assert (first.uploaded, first.refused, second) == (1, 1, Flushed())
    (left,) = partition.entries()
    assert (left.call_id, "capture_too_large" in left.refused) == ("large", True)


def test_a_failure_of_the_service_stops_the_flush_and_nothing_is_lost() -> None:
    partition = spooled_for(NOWHERE, spilled(LOG, "one"))
    partition.keep(spilled(LOG, "two"), "down")
    with SyncClient(NOWHERE, retries=0) as client:
        flushed = flush.flush(partition, client)

    assert isinstance(flushed.failure, errors.Unreachable)
    assert (flushed.uploaded, flushed.left, len(partition.entries())) == (0, 2, 2)


def test_bytes_damaged_on_the_disk_are_not_uploaded(service: ServiceProcess) -> None:
    spill = spilled(LOG, session="damaged")
    partition = spooled_for(service.url, spill)
    (partition.folder.path / f"{spill.id}.bin").write_bytes(b"x" * spill.size)
    with SyncClient(service.url) as client:
        flush.flush(partition, client)

        with pytest.raises(errors.NotFound):
            client.get(spill.id)
    assert partition.entries()[0].refused == "its bytes were damaged on this machine's disk"


def test_the_client_uploads_by_itself_once_the_service_is_back(
    own_service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    url = own_service.url
    own_service.stop()
    with SyncClient(url, retries=0) as client:
        storage = new_storage(client)
        spill = spilled(LOG, session="comes-back")
        kept = put_sync(storage, spill)
        own_service.start()

        assert kept.outcome is Outcome.SPOOLED
        assert storage.partition is not None
        assert until(lambda: storage.partition is not None and not storage.partition.entries())
        assert client.content(spill.id) == LOG.encode()


def test_what_waits_is_uploaded_at_once_when_the_service_takes_another(
    own_service: ServiceProcess, new_storage: Callable[..., Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill.delivery.storage.FIRST_RETRY_SECONDS", 3600.0)
    with SyncClient(own_service.url, retries=0) as client:
        storage = new_storage(client)
        assert put_sync(storage, spilled(LOG, "first")).outcome is Outcome.CAPTURED
        own_service.stop()
        assert put_sync(storage, spilled(LOG, "second")).outcome is Outcome.SPOOLED
        own_service.start()
        assert put_sync(storage, spilled(LOG, "third")).outcome is Outcome.CAPTURED

        assert until(lambda: storage.partition is not None and not storage.partition.entries())


def test_what_an_earlier_process_left_is_uploaded_with_the_next_capture(
    service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    left = spilled(LOG, "left", session="left-behind")
    partition = spooled_for(service.url, left)
    with SyncClient(service.url) as client:
        put_sync(new_storage(client), spilled(LOG, "next", session="left-behind"))

        assert until(lambda: not partition.entries())
        assert client.content(left.id) == LOG.encode()


def test_several_processes_upload_everything_once(service: ServiceProcess) -> None:
    partition = Spool().partition(service.url, "")
    spills = [spilled(f"{number} {LOG}", f"call_{number}", session="together") for number in range(20)]
    for spill in spills:
        partition.keep(spill, "down")
    code = """
import sys
from overspill import SyncClient
from overspill.spools import flush
from overspill.spools.spool import Spool
with SyncClient(sys.argv[1]) as client:
    flushed = flush.flush(Spool().partition(sys.argv[1], ""), client)
print(flushed.uploaded)
assert flushed.failure is None
"""
    with ThreadPoolExecutor(3) as threads:
        uploaded = list(threads.map(lambda url: int(printed_by(code, url)), [service.url] * 3))

    assert sum(uploaded) == 20
    assert partition.entries() == []
    with SyncClient(service.url) as client:
        assert {entry.id for entry in client.list(session="together").captures} == {
            each.id for each in spills
        }


def test_another_tenants_captures_are_never_uploaded_by_the_client(
    service: ServiceProcess, new_storage: Callable[..., Storage]
) -> None:
    theirs = spooled_for(service.url, spilled(LOG, "theirs", session="tenants"), key="their-key")
    with SyncClient(service.url) as client:
        own = spooled_for(service.url, spilled(LOG, "own", session="tenants"))
        put_sync(new_storage(client), spilled(LOG, "next", session="tenants"))

        assert until(lambda: not own.entries())
        assert {entry.call_id for entry in client.list(session="tenants").captures} == {"own", "next"}
    assert [entry.call_id for entry in theirs.entries()] == ["theirs"]


def test_kill_9_while_uploading_loses_nothing_and_doubles_nothing(own_service: ServiceProcess) -> None:
    partition = Spool().partition(own_service.url, "")
    spills = [spilled(f"{number} {LOG * 20}", f"call_{number}", session="killed") for number in range(6)]
    for spill in spills:
        partition.keep(spill, "down")
    code = """
import sys
from overspill import SyncClient
from overspill.spools import flush
from overspill.spools.spool import Spool
with SyncClient(sys.argv[1]) as client:
    print("begins", flush=True)
    flush.flush(Spool().partition(sys.argv[1], ""), client)
"""
    for delay in (0.01, 0.05, 0.1):
        with running_code(code, own_service.url) as process:  # which is killed at the end
            process.stdout.readline()
            threading.Event().wait(delay)
    with SyncClient(own_service.url) as client:
        flush.flush(partition, client)
        captures = client.list(session="killed").captures

        assert {entry.id for entry in captures} == {spill.id for spill in spills}
        assert len(captures) == 6
    assert partition.entries() == []


def test_the_interpreter_ends_with_the_spool_busy(spool_path: Path) -> None:
    code = f"""
from overspill import SyncClient
from overspill.delivery.storage import Storage
from tests.client.spooling import put_sync, spilled
storage = Storage(SyncClient({NOWHERE!r}, retries=0))
for number in range(5):
    print(put_sync(storage, spilled("x" * 60_000, str(number))).outcome)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(OVERSPILL_SPOOL=str(spool_path)),
    )

    assert (done.returncode, done.stdout.split()) == (0, ["spooled"] * 5)
    assert done.stderr.startswith("outputs are being spooled in ")
    assert done.stderr.count("\n") == 1
    assert len(Spool().partition(NOWHERE, "").entries()) == 5


def test_importing_the_storage_loads_no_http_library() -> None:
    slow = {"aiohttp", "backports.zstd", "overspill.transfer.compression"}
    code = f"import sys, overspill.delivery.storage; sys.exit(not sys.modules.keys().isdisjoint({slow}))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the agent's own workspace ---


async def test_a_workspace_has_the_exact_content_in_a_file_that_the_notice_can_name(
    tmp_path: Path, new_storage: Callable[..., Storage]
) -> None:
    async with Client(NOWHERE, retries=0) as client:
        spill = spilled(LOG)
        kept = await put(new_storage(client, spool=Workspace(tmp_path)), spill)

    assert (kept.outcome, kept.path) == (Outcome.SPOOLED, f".overspill/{spill.id}.txt")
    assert (tmp_path / kept.path).read_text() == LOG
    assert (tmp_path / ".overspill" / ".gitignore").read_text() == "*\n"


def test_git_and_ripgrep_pass_over_the_outputs_in_a_workspace(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    put_sync(Storage(None, spool=Workspace(tmp_path)), spilled("needle\n" * 9_000))
    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain"], capture_output=True, check=True, text=True
    )

    found = subprocess.run(
        [Path(sys.executable).parent / "rg", "needle", tmp_path], capture_output=True, check=False, text=True
    )

    assert (status.stdout, found.stdout) == ("", "")


def test_a_workspace_needs_no_service(tmp_path: Path) -> None:
    kept = put_sync(Storage(None, spool=Workspace(tmp_path)), spilled(LOG))

    assert (kept.outcome, kept.reason) == (Outcome.SPOOLED, "")
    assert (tmp_path / kept.path).read_text() == LOG


def test_a_file_that_the_agent_has_changed_is_written_anew(tmp_path: Path) -> None:
    storage = Storage(None, spool=Workspace(tmp_path))
    path = tmp_path / put_sync(storage, spilled(LOG)).path
    path.write_text("x" * len(LOG))
    put_sync(storage, spilled(LOG))

    assert path.read_text() == LOG


def test_a_workspace_is_bounded_too(tmp_path: Path) -> None:
    storage = Storage(None, spool=Workspace(tmp_path, max_bytes=300_000))
    kept = [put_sync(storage, spilled(str(n) * 100_000)) for n in range(4)]

    assert [(tmp_path / each.path).is_file() for each in kept] == [True, True, False, False]
    assert "the local spool is full" in kept[3].reason


@pytest.mark.parametrize("planted", ["link", "file"])
def test_what_stands_where_the_outputs_go_is_not_followed(tmp_path: Path, planted: str) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    if planted == "link":
        (workspace / ".overspill").symlink_to(elsewhere)
    else:
        (workspace / ".overspill").write_text("mine")
    kept = put_sync(Storage(None, spool=Workspace(workspace)), spilled(LOG))

    assert kept == StoreResult(
        outcome=Outcome.TRUNCATED, reason=".overspill in the workspace is not a directory: remove it"
    )
    assert list(elsewhere.iterdir()) == []


def test_a_workspace_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    kept = put_sync(Storage(None, spool=Workspace(tmp_path / "gone")), spilled(LOG))

    assert kept.reason == f"the workspace {tmp_path / 'gone'} is not a directory"


def test_nothing_configured_is_a_reason() -> None:
    assert put_sync(Storage(None), spilled(LOG)) == StoreResult(
        outcome=Outcome.TRUNCATED, reason="no Overspill service is configured"
    )


def test_guards_of_one_service_leave_it_alone_together_whatever_their_keys(
    new_storage: Callable[..., Storage],
) -> None:
    with SyncClient(NOWHERE, retries=0) as first, SyncClient(NOWHERE, "ovs_" + "b" * 32, retries=0) as second:
        storages = [new_storage(client) for client in (first, second, second)]
        for number in range(2):
            put_sync(storages[0], spilled(LOG, str(number)))
        kept = [put_sync(storage, spilled(LOG, "after")) for storage in storages]
        storages[0].close()
        is_away = [storage.health is not None and storage.health.is_away for storage in storages[1:]]

    assert all(each.reason.startswith("the service has failed since") for each in kept)
    assert is_away == [True, True]


def test_the_circuit_is_told_of_through_the_storage(new_storage: Callable[..., Storage]) -> None:
    with SyncClient(NOWHERE, retries=0) as client:
        storage = new_storage(client)
        for number in range(2):
            put_sync(storage, spilled(LOG, str(number)))

        assert storage.health is not None
        assert storage.health.circuit.is_open
