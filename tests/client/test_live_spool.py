"""Live captures whose service goes away: the whole waits in the spool and comes later, under the same id."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from overspill import Client, Spool, SyncClient, wire
from overspill.agent_tools.live_upload import LiveUpload
from overspill.agent_tools.recording import Recording
from overspill.live import live_capture
from overspill.redaction.redactor import Redactor
from overspill.spools.flush import flush
from overspill.spools.holder import Holder
from overspill.wire import State

from tests.servers.overspill import ForkedService, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LINES = b"".join(b"line %d\n" % number for number in range(2_000))


@pytest.fixture(params=["sqlite", "redis"])
def either_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, on either catalog."""
    catalog = "sqlite:" if request.param == "sqlite" else request.getfixturevalue("redis_url")
    with running(ForkedService(tmp_path / "overspill", catalog=catalog, live_timeout=3600.0)) as own:
        yield own


@pytest.fixture
def spool_of_all(tmp_path: Path) -> Spool:
    """A spool that is refused, because all users may write to it."""
    path = tmp_path / "spool"
    path.mkdir()
    path.chmod(0o777)
    return Spool(path)


def test_what_the_spool_takes_over_in_the_middle_comes_later_under_the_same_id(
    either_service: ServiceProcess, tmp_path: Path
) -> None:
    service, spool = either_service, Spool(tmp_path / "spool")
    with SyncClient(service.url, session="s", retries=0) as client:
        with client.live(tool="make", call_id="c1", spool=spool, patience=0.2) as out:
            handle = out.id
            out.write(LINES[:9_000])
            out.flush()
            service.stop()
            out.write(LINES[9_000:])
            out.ends_with(status="exit 2", exit_code=2)
        partition = spool.partition(client.address.url, client.address.key)
        with Holder(partition).source(None, handle) as here:
            waiting = here.content(handle)
        service.start()
        beginning = client.get(handle)
        flushed = flush(partition, client)
        entry, content = client.get(handle), client.content(handle)

    assert (out.id, bool(out.spooled), waiting) == (handle, True, LINES)
    assert (beginning.state, flushed.uploaded, partition.is_empty()) == (State.LIVE, 1, True)
    assert (entry.state, entry.status, content) == (State.COMPLETE, "exit 2", LINES)
    assert entry.labels[wire.EXIT_CODE_LABEL] == "2"
    assert wire.SPOOLED_LABEL in entry.labels


def test_the_blocks_own_error_is_raised_where_the_spool_is_refused(spool_of_all: Spool, nowhere: str) -> None:
    def fail_in_block(client: SyncClient) -> None:
        with client.live(spool=spool_of_all, patience=0.1) as out:
            out.write(b"x\n")
            raise ZeroDivisionError

    with SyncClient(nowhere, retries=0) as client, pytest.raises(ZeroDivisionError):
        fail_in_block(client)


def test_an_upload_says_why_the_spool_refused_what_the_service_did_not_take(
    spool_of_all: Spool, nowhere: str
) -> None:
    with SyncClient(nowhere, retries=0) as client, Recording() as recording:
        capture = client.live(spool=spool_of_all, patience=0.1)
        with LiveUpload(recording, lambda: capture, after_bytes=0) as upload:
            upload.take(b"x\n")
            entry = upload.ended(status="exit 0", exit_code=0)

    assert entry is None
    assert "chmod 700 makes it safe" in upload.failure


async def test_what_a_cancelled_producer_could_not_send_is_kept(
    either_service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_capture, "_HURRIED_SECONDS", 0.2)
    service, spool = either_service, Spool(tmp_path / "spool")
    begun = asyncio.Event()
    async with Client(service.url, retries=0) as client:
        capture = client.live(spool=spool)

        async def produce() -> None:
            async with capture as out:
                await out.write(LINES[:9_000])
                await out.flush()
                service.stop()
                await out.write(LINES[9_000:])
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(produce())
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        partition = spool.partition(client.address.url, client.address.key)
        with Holder(partition).source(None, capture.id) as here:
            assert here.content(capture.id) == LINES


async def test_who_followed_the_beginning_goes_on_in_the_whole(
    own_service: ServiceProcess, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    async with Client(own_service.url, retries=0) as client, Client(own_service.url) as other:
        async with client.live(spool=spool, patience=0.2) as out:
            await out.write(LINES[:9_000])
            await out.flush()
            following = other.follow(out.id)
            first = await anext(following)
            own_service.stop()
            await out.write(LINES[9_000:])
        own_service.start()
        with SyncClient(own_service.url) as uploads:
            flush(spool.partition(client.address.url, client.address.key), uploads)
        rest = [each async for each in following]

        assert first.offset == 0
        assert first.content.encode() + b"".join(each.content.encode() for each in rest) == LINES
        assert following.end is not None
        assert (following.end.state, following.end.size) == (State.COMPLETE, len(LINES))


@pytest.mark.parametrize("catalog", ["sqlite", "redis"])
def test_a_live_capture_says_which_secrets_were_masked_in_it(
    catalog: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = "sqlite:" if catalog == "sqlite" else request.getfixturevalue("redis_url")
    with running(ForkedService(tmp_path, catalog=url)) as service, SyncClient(service.url) as client:
        with client.live(redactor=Redactor(), labels={"own": "label"}) as out:
            out.write("token ghp_" + "aB3" * 12 + "\n")
        with client.live(redactor=Redactor()) as harmless:
            harmless.write("nothing to mask\n")

        assert client.get(out.id).labels == {"own": "label", wire.REDACTED_LABEL: "github-token=1"}
        assert client.get(harmless.id).labels == {}


def test_a_stream_in_the_spool_says_which_secrets_were_masked_in_it(tmp_path: Path, nowhere: str) -> None:
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(nowhere, retries=0) as client,
        client.live(redactor=Redactor(), spool=spool) as out,
    ):
        out.write("token ghp_" + "aB3" * 12 + "\n")

    entry = spool.partition(nowhere, client.address.key).find(out.id)
    assert entry is not None
    assert (entry.labels, entry.producer) == ({wire.REDACTED_LABEL: "github-token=1"}, "")
