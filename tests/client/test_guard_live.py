"""Streams that pass a guard and become live captures: other machines see them grow."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Band, Client, Guard, Policy, Spool, SyncClient, calling, wire
from overspill.delivery import stream_upload
from overspill.live.resender import Resender
from overspill.spools.flush import flush
from overspill.wire import Outcome, State
from overspill_service.tenants.keys import hash_key, new_key

from tests.client.shell import printed_by
from tests.processes import connections_to
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

BEGINNING = "".join(f"step {number} is done\n" for number in range(3_000))
REST = "".join(f"test {number} passed\n" for number in range(3_000))
TOKEN = "ghp_" + "aB3" * 12
SECRET, MASKED = f"the token is {TOKEN}\n", "the token is [REDACTED github-token]\n"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are looked at more often than usual."""
    monkeypatch.setattr(stream_upload, "LIVE_SECONDS", 0.05)
    monkeypatch.setattr(stream_upload, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(stream_upload, "IDLE_SECONDS", 0.02)


@pytest.fixture(params=["sqlite", "redis"])
def either_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, on either catalog."""
    catalog = "sqlite:" if request.param == "sqlite" else request.getfixturevalue("redis_url")
    with running(ForkedService(tmp_path / "overspill", catalog=catalog)) as own:
        yield own


class Reader:
    """Another machine: a client that knows the session, and nothing of the guard."""

    def __init__(self, url: str, session: str, key: str | None = None) -> None:
        self.client, self.session = SyncClient(url, key, session=session), session

    def captures(self) -> list[wire.Entry]:
        return self.client.list(session=self.session).captures

    def sees(self, size: int, state: State = State.LIVE) -> bool:
        return any(each.size >= size and each.state is state for each in self.captures())

    def until_seen(self, size: int) -> str:
        wait_until(lambda: self.sees(size), f"a live capture of {size} bytes")
        return self.captures()[0].id


def seen_half_way(reader: Reader, found: list[str]) -> Iterator[str]:
    """A tool that goes on once another machine has seen all that it has printed."""
    yield from BEGINNING.splitlines(keepends=True)
    found.append(reader.until_seen(len(BEGINNING)))
    yield from REST.splitlines(keepends=True)


def test_another_machine_sees_a_stream_grow_under_the_id_of_its_notice(
    either_service: ServiceProcess,
) -> None:
    reader, found, followed = Reader(either_service.url, "grow"), list[str](), list[str]()

    def follow() -> None:
        wait_until(lambda: found, "the capture")
        followed.extend(each.content for each in reader.client.follow(found[0]))

    following = threading.Thread(target=follow)
    with SyncClient(either_service.url, session="grow") as client, Guard(client) as guard:
        following.start()
        with calling("call_1"):
            [notice] = guard.wrap(seen_half_way, name="build")(reader, found)
        following.join(30)
        entry = reader.client.get("call:call_1")

        assert [entry.id] == found
        assert (entry.state, entry.tool, entry.labels[wire.PREVIEW_LABEL]) == (
            State.COMPLETE,
            "build",
            "preview",
        )
        assert (entry.id in notice, f"{len(BEGINNING + REST)} bytes" in notice) == (True, True)
        assert "".join(followed) == reader.client.content(entry.id).decode() == BEGINNING + REST
        assert len(reader.captures()) == 1


async def test_an_asynchronous_stream_that_comes_slowly_is_seen_too(service: ServiceProcess) -> None:
    reader, found = Reader(service.url, "grow-async"), list[str]()

    async def tool() -> AsyncIterator[bytes]:
        for line in BEGINNING.splitlines(keepends=True):
            yield line.encode()
        while not found:  # each chunk lets those before it be read
            await asyncio.sleep(0.05)
            yield b"waiting\n"
            if await asyncio.to_thread(reader.sees, len(BEGINNING)):
                found.append(reader.captures()[0].id)
        yield REST.encode()

    async with Client(service.url, session="grow-async") as client, Guard(client) as guard:
        guarded = await guard.process(tool(), tool="build")

    assert guarded.capture is not None
    content = reader.client.content(guarded.capture).decode()
    assert ([guarded.capture], guarded.outcome) == (found, Outcome.CAPTURED)
    assert (content.startswith(BEGINNING), content.endswith(REST)) == (True, True)
    assert reader.client.get(guarded.capture).state is State.COMPLETE


def test_a_stream_of_records_is_seen_as_it_grows(service: ServiceProcess) -> None:
    reader, found = Reader(service.url, "grow-records"), []

    def rows() -> Iterator[dict[str, Any]]:
        for number in range(4_000):
            yield {"number": number, "name": f"row {number} of the table"}
        found.append(reader.until_seen(100_000))
        yield {"number": 4_000, "name": "the last"}

    with SyncClient(service.url, session="grow-records") as client, Guard(client) as guard:
        last = list(guard.wrap(rows)())[-1]

    entry = reader.client.get(found[0])
    assert (entry.state, entry.lines, entry.content_type) == (State.COMPLETE, 4_001, "application/x-ndjson")
    assert found[0] in str(last)


def test_no_secret_is_ever_seen_wherever_chunks_and_looks_cut_it(service: ServiceProcess) -> None:
    reader = Reader(service.url, "grow-secrets")
    shown: list[bytes] = []

    def tool() -> Iterator[str]:
        yield BEGINNING
        reader.until_seen(len(BEGINNING))
        for character in f"the token {TOKEN} is here\n":
            yield character
            time.sleep(0.01)
            shown.append(reader.client.content(reader.captures()[0].id))
        yield REST

    with SyncClient(service.url, session="grow-secrets") as client, Guard(client) as guard:
        [notice] = guard.wrap(tool)()

    entry = reader.captures()[0]
    content = reader.client.content(entry.id).decode()
    assert content == f"{BEGINNING}the token [REDACTED github-token] is here\n{REST}"
    assert all(content.encode().startswith(each) for each in shown)
    assert (entry.labels[wire.REDACTED_LABEL], "github-token" in notice) == ("github-token=1", True)


def test_a_tool_that_fails_leaves_a_capture_that_says_so(service: ServiceProcess) -> None:
    reader, found = Reader(service.url, "grow-fails"), []

    def tool() -> Iterator[str]:
        yield BEGINNING
        found.append(reader.until_seen(len(BEGINNING)))
        raise ValueError("the disk is gone")

    with SyncClient(service.url, session="grow-fails") as client, Guard(client) as guard:
        stream = guard.wrap(tool)()
        notice = next(stream)
        with pytest.raises(ValueError, match="the disk is gone"):
            next(stream)

    assert (
        reader.client.content(found[0])
        .decode()
        .endswith("(the stream failed here: ValueError: the disk is gone)\n")
    )
    assert reader.client.get(found[0]).state is State.COMPLETE
    assert found[0] in notice


def test_a_stream_that_nobody_reads_on_ends_as_partial(service: ServiceProcess) -> None:
    reader = Reader(service.url, "grow-left")

    def endless() -> Generator[Any, None, None]:
        yield {"first": "record"}
        yield {"text": BEGINNING + REST}
        while True:
            yield OPAQUE

    with SyncClient(service.url, session="grow-left") as client, Guard(client) as guard:
        stream = guard.wrap(endless)()
        while not reader.captures():
            next(stream)
        stream.close()
        wait_until(lambda: reader.captures()[0].state is State.PARTIAL, "the end of the capture")


OPAQUE = object()
"""It shows nothing of itself, so it passes."""


async def test_a_cancelled_reader_ends_the_capture_as_partial(service: ServiceProcess) -> None:
    reader = Reader(service.url, "grow-cancelled")

    async def tool() -> AsyncIterator[str]:
        yield BEGINNING
        await asyncio.Event().wait()

    async with Client(service.url, session="grow-cancelled") as client, Guard(client) as guard:
        reading = asyncio.create_task(guard.process(tool(), tool="build"))
        await asyncio.to_thread(reader.until_seen, len(BEGINNING))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.to_thread(
            wait_until, lambda: reader.captures()[0].state is State.PARTIAL, "the end of the capture"
        )


async def test_a_cancelled_reader_of_a_blocking_tool_ends_the_capture_as_partial(
    service: ServiceProcess,
) -> None:
    reader, is_cancelled = Reader(service.url, "grow-dropped"), threading.Event()

    def tool() -> Iterator[str]:
        yield BEGINNING
        is_cancelled.wait(60)
        yield REST

    async with Client(service.url, session="grow-dropped") as client, Guard(client) as guard:
        reading = asyncio.create_task(guard.process(tool(), tool="build"))
        await asyncio.to_thread(reader.until_seen, len(BEGINNING))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        is_cancelled.set()
        await asyncio.to_thread(
            wait_until, lambda: reader.sees(len(BEGINNING), State.PARTIAL), "the end of the capture"
        )


def test_an_output_that_is_a_live_capture_already_is_not_stored_again(service: ServiceProcess) -> None:
    session = "grow-known"
    with SyncClient(service.url, session=session) as client, Guard(client) as guard:
        with client.live(call_id="call_1") as out:
            out.write(BEGINNING + REST)

        def tool() -> Iterator[str]:
            yield BEGINNING
            time.sleep(0.3)
            yield REST

        with calling("call_1", capture=out.id):
            guarded = guard.process_sync(tool(), tool="build")

        assert guarded.capture == out.id
        assert [each.id for each in client.list(session=session).captures] == [out.id]


def test_a_service_that_stops_in_the_middle_gets_the_whole_later_under_the_same_id(
    either_service: ServiceProcess, tmp_path: Path
) -> None:
    service, spool = either_service, Spool(tmp_path / "spool")
    reader, found = Reader(service.url, "grow-stops"), []

    def tool() -> Iterator[str]:
        yield BEGINNING
        found.append(reader.until_seen(len(BEGINNING)))
        service.stop()
        yield REST

    with SyncClient(service.url, session="grow-stops", retries=0) as client:
        guard = Guard(client, spool=spool)
        guarded = guard.process_sync(tool(), tool="build", call_id="call_1")
        partition = spool.partition(client.address.url, client.address.key)
        waiting = partition.find("call:call_1")
        service.start()
        flush(partition, client)
        wait_until(lambda: not partition.entries(), "the upload, if the guard's own has begun first")

        assert ([guarded.capture], guarded.outcome) == (found, Outcome.SPOOLED)
        assert waiting is not None
        assert (waiting.id, waiting.size) == (found[0], len(BEGINNING + REST))
        assert reader.client.content(found[0]).decode() == BEGINNING + REST
        assert [each.state for each in reader.captures()] == [State.COMPLETE]


def test_a_service_that_comes_back_before_the_end_has_all_of_it(either_service: ServiceProcess) -> None:
    service, found = either_service, list[str]()
    reader = Reader(service.url, "grow-back")

    def tool() -> Iterator[str]:
        yield BEGINNING
        found.append(reader.until_seen(len(BEGINNING)))
        service.kill()
        yield REST
        service.start()
        yield REST
        reader.until_seen(len(BEGINNING + REST + REST))

    with SyncClient(service.url, session="grow-back", retries=0) as client, Guard(client) as guard:
        guarded = guard.process_sync(tool(), tool="build")

    assert ([guarded.capture], guarded.outcome) == (found, Outcome.CAPTURED)
    assert reader.client.content(found[0]).decode() == BEGINNING + REST + REST


def test_a_capture_that_the_service_has_given_up_is_completed_by_the_whole(tmp_path: Path) -> None:
    with running(ForkedService(tmp_path / "overspill", live_timeout=0.5)) as service:
        reader, found = Reader(service.url, "grow-late"), []

        def tool() -> Iterator[str]:
            yield BEGINNING
            found.append(reader.until_seen(len(BEGINNING)))
            wait_until(lambda: reader.sees(len(BEGINNING), State.PARTIAL), "the end of the capture")
            yield REST

        with SyncClient(service.url, session="grow-late") as client, Guard(client) as guard:
            guarded = guard.process_sync(tool(), tool="build")

        assert ([guarded.capture], guarded.outcome) == (found, Outcome.CAPTURED)
        assert [each.state for each in reader.captures()] == [State.COMPLETE]
        assert reader.client.content(found[0]).decode() == BEGINNING + REST


@pytest.mark.parametrize("redaction", ["refuse", "tag"])
def test_a_tenant_without_secrets_sees_a_masked_stream_grow(tmp_path: Path, redaction: str) -> None:
    key, tenants = new_key(), tmp_path / "tenants.toml"
    tenants.write_text(
        f'[[tenants]]\nname = "acme"\nredaction = "{redaction}"\n'
        f'keys = [{{hash = "{hash_key(key)}", scopes = ["read", "write"]}}]\n'
    )
    with running(ForkedService(tmp_path / "overspill", tenants=tenants)) as service:
        reader, found = Reader(service.url, "grow-clean", key), []

        def tool() -> Iterator[str]:
            yield BEGINNING
            found.append(reader.until_seen(len(BEGINNING)))
            yield SECRET
            yield REST + "Done"

        with SyncClient(service.url, key, session="grow-clean") as client, Guard(client) as guard:
            guarded = guard.process_sync(tool(), tool="build", call_id="call_1")

        assert (guarded.outcome, guarded.reason) == (Outcome.CAPTURED, None)
        assert [(each.id, each.state) for each in reader.captures()] == [(found[0], State.COMPLETE)]
        assert reader.client.content(found[0]).decode() == BEGINNING + MASKED + REST + "Done"


def test_a_stream_with_secrets_of_a_guard_that_masks_none_is_stored_masked_at_its_end(tmp_path: Path) -> None:
    key, tenants = new_key(), tmp_path / "tenants.toml"
    tenants.write_text(
        f'[[tenants]]\nname = "acme"\nredaction = "tag"\n'
        f'keys = [{{hash = "{hash_key(key)}", scopes = ["read", "write"]}}]\n'
    )
    with running(ForkedService(tmp_path / "overspill", tenants=tenants)) as service:
        reader, found = Reader(service.url, "grow-secret", key), []

        def tool() -> Iterator[str]:
            yield BEGINNING
            found.append(reader.until_seen(len(BEGINNING)))
            yield SECRET
            yield REST

        exact = Policy(redaction="off")
        with (
            SyncClient(service.url, key, session="grow-secret") as client,
            Guard(client, exact) as guard,
        ):
            guarded = guard.process_sync(tool(), tool="build", call_id="call_1")

        assert (guarded.capture, guarded.outcome) == (found[0], Outcome.CAPTURED)
        assert reader.client.content(found[0]).decode() == BEGINNING + MASKED + REST


def test_a_policy_that_keeps_long_outputs_here_lets_no_stream_grow_elsewhere(service: ServiceProcess) -> None:
    reader = Reader(service.url, "grow-here")
    policy = Policy(bands=(Band(), Band(above=100_000, destinations=("spool",))))

    def tool() -> Iterator[str]:
        yield BEGINNING
        time.sleep(0.3)
        assert not reader.captures()
        yield REST * 10

    with SyncClient(service.url, session="grow-here") as client, Guard(client, policy) as guard:
        assert guard.process_sync(tool(), tool="build").outcome is Outcome.SPOOLED


async def test_many_streams_grow_at_once_over_few_connections(own_service: ServiceProcess) -> None:
    reader, many = Reader(own_service.url, "fleet"), 50
    go_on = asyncio.Event()

    async def tool(number: int) -> AsyncIterator[str]:
        yield f"stream {number}\n" + BEGINNING
        await go_on.wait()
        yield REST

    def all_seen() -> bool:
        page = reader.client.iterate(session="fleet", state=State.LIVE)
        return sum(each.size > len(BEGINNING) for each in page) == many

    async with Client(own_service.url, session="fleet") as client, Guard(client, Policy(wait=60)) as guard:
        guarded = [
            asyncio.create_task(guard.process(tool(number), tool="build", call_id=f"call_{number}"))
            for number in range(many)
        ]
        await asyncio.to_thread(wait_until, all_seen, "all streams", 120)
        connections = connections_to(own_service.url)
        go_on.set()
        done = await asyncio.gather(*guarded)

    assert {each.outcome for each in done} == {Outcome.CAPTURED}
    assert 0 < connections <= 40
    ended = list(reader.client.iterate(session="fleet"))
    assert {each.state for each in ended} == {State.COMPLETE}
    assert {each.size - len(BEGINNING + REST) for each in ended} <= {9, 10, 11}


def test_a_forked_child_leaves_the_streams_of_its_parent_alone(service: ServiceProcess) -> None:
    code = (
        "import os, sys, time\n"
        "from overspill import Guard, SyncClient\n"
        "from overspill.delivery import stream_upload\n"
        "stream_upload.LIVE_SECONDS = 0.05\n"
        "with SyncClient(sys.argv[1], session='forks') as client, Guard(client) as guard:\n"
        "    def chunks():\n"
        "        yield {'first': 'record'}\n"
        "        yield {'text': 'x' * 100_000}\n"
        "        while not client.list(session='forks').captures:\n"
        "            time.sleep(0.05)\n"
        "        yield object()\n"
        "        yield {'text': 'the end'}\n"
        "    stream = guard.wrap(chunks)()\n"
        "    assert next(stream) == {'first': 'record'}\n"
        "    next(stream)\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        stream.close()\n"
        "        guard.close()\n"
        "        sys.exit()\n"
        "    os.waitpid(child, 0)\n"
        "    print(client.list(session='forks').captures[0].state)\n"
        "    print(list(stream))\n"
        "    print(client.list(session='forks').captures[0].state)\n"
    )
    before, notice, after = printed_by(code, service.url).splitlines()

    assert (before, "NOT STORED" in notice, after) == ("live", False, "complete")


def test_memory_stays_flat_while_a_stream_grows(service: ServiceProcess) -> None:
    code = (
        "import resource, sys\n"
        "from overspill import Guard, SyncClient\n"
        "def chunks(megabytes):\n"
        "    for _ in range(16 * megabytes):\n"
        "        yield b'0123456789abcde\\n' * 4096\n"
        "with SyncClient(sys.argv[1], session='flat') as client, Guard(client) as guard:\n"
        "    guard.process_sync(chunks(8), tool='t')\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    guarded = guard.process_sync(chunks(48), tool='t')\n"
        "    print(guarded.outcome)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    in_a_python_of_its_own = [sys.executable, "-c", code, service.url]  # a fork has a larger, uneven heap
    done = subprocess.run(in_a_python_of_its_own, capture_output=True, check=True, text=True)
    outcome, growth = done.stdout.splitlines()

    assert outcome in {"captured", "spooled"}
    assert int(growth) < 16 * 1024


def test_whatever_fails_while_a_stream_grows_it_is_stored_at_its_end(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader, has_failed = Reader(service.url, "grow-broken"), threading.Event()

    async def fail(*_: object) -> int:
        has_failed.set()
        raise ModuleNotFoundError("No module named 'google_crc32c'")

    monkeypatch.setattr(Resender, "send_next", fail)

    def tool() -> Iterator[str]:
        yield BEGINNING
        has_failed.wait(60)
        yield REST

    with SyncClient(service.url, session="grow-broken") as client, Guard(client, spool=False) as guard:
        guarded = guard.process_sync(tool(), tool="build")

        assert guarded.outcome is Outcome.CAPTURED
        assert guarded.capture is not None
        assert reader.client.content(guarded.capture).decode() == BEGINNING + REST
    assert "google_crc32c" in caplog.text
