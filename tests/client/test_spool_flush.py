"""Flushes of the spool to a service that fails: for one capture, on the way, or altogether."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp
import overspill
import pytest
from aiohttp import web
from msgspec import structs
from overspill import Client, SyncClient, errors
from overspill.delivery.storage import Storage
from overspill.errors import verdicts
from overspill.spools import flush, flush_job, own_directory
from overspill.spools.flush import Flushed
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool
from overspill.spools.workspace import Workspace
from overspill.wire import SPOOLED_LABEL, Code, Outcome

from tests.bytecode import copy_package
from tests.client import scripted
from tests.client.shell import Shell
from tests.client.spooling import Clock, put, put_sync, spilled
from tests.servers import faulty_proxy
from tests.servers.faulty_proxy import lose_reply, refuse, reset
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from tests.servers.faulty_proxy import Exchange, Fault
    from tests.servers.overspill import ServiceProcess

NOWHERE: Final = "http://127.0.0.1:1"
UPLOADED: Final = re.compile(r"overspill: uploaded [1-5] captures? that waited on this machine\n$")
LOG: Final = "".join(f"request {number} served\n" for number in range(3_000))


@pytest.fixture(autouse=True)
def spool_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def five_waiting(url: str, session: str) -> tuple[Partition, list[str]]:
    partition = Spool().partition(url, "")
    return partition, [
        partition.keep(spilled(f"{number} {LOG}", f"call_{number}", session=session), "down").id
        for number in range(5)
    ]


async def flushed(partition: Partition, url: str, *, again: bool = False) -> Flushed:
    """A flush as a process of its own would make it."""

    def run() -> Flushed:
        with SyncClient(url, retries=0) as client:
            return flush.flush(partition, client, again=again)

    return await asyncio.to_thread(run)


def only(name: str, fault: Fault) -> Fault:
    """The fault for one capture; all others pass."""

    async def answer(exchange: Exchange) -> web.Response:
        return await (fault(exchange) if name in exchange.request.path else exchange.forward())

    return answer


def flip_a_bit(target: str) -> Fault:
    """A bit in the middle of the body changes on the way."""

    async def answer(exchange: Exchange) -> web.Response:
        asked = exchange.request
        body = bytearray(await asked.content.read())
        body[len(body) // 2] ^= 4
        headers = {name: text for name, text in asked.headers.items() if name != "Content-Length"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(asked.method, target + asked.path, headers=headers, data=body) as reply,
        ):
            return web.Response(status=reply.status, body=await reply.read(), content_type=reply.content_type)

    return answer


# --- one capture of many ---


@pytest.mark.parametrize("fault", [refuse(500), reset], ids=["500", "reset"])
async def test_a_capture_that_always_fails_does_not_hold_up_the_others(
    service: ServiceProcess, fault: Fault, request: pytest.FixtureRequest
) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, names = five_waiting(proxy.url, request.node.name)
        proxy.always("PUT", only(names[0], fault))
        done = await flushed(partition, proxy.url)

        assert (done.uploaded, done.postponed, done.left, done.failure) == (4, 1, 0, None)
        assert [entry.id for entry in partition.entries()] == names[:1]


async def test_a_capture_whose_entry_is_damaged_does_not_hold_up_the_others(
    service: ServiceProcess, request: pytest.FixtureRequest
) -> None:
    partition, names = five_waiting(service.url, request.node.name)
    entry = partition.folder.path / f"{names[0]}.json"
    entry.write_text(entry.read_text().replace("text/plain", "a\\nb"))
    done = await flushed(partition, service.url)

    assert (done.uploaded, done.failure) == (4, None)
    assert [each.refused[:30] for each in partition.entries()] == ["what is known of it was damage"]


async def test_what_failed_is_not_the_next_process_first_try_and_is_sent_when_asked_for(
    service: ServiceProcess,
) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, names = five_waiting(proxy.url, "put-off")
        proxy.always("PUT", only(names[2], refuse(500)))
        await flushed(partition, proxy.url)
        proxy.forget()
        proxy.heal()
        second = await flushed(partition, proxy.url)
        tried = proxy.count("PUT")
        third = await flushed(partition, proxy.url, again=True)

    assert (tried, second) == (0, Flushed())
    assert (third.uploaded, partition.entries()) == (1, [])


async def test_a_capture_is_tried_again_later_and_later(service: ServiceProcess) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, names = five_waiting(proxy.url, "later")
        proxy.always("PUT", only(names[0], refuse(500)))
        pauses = []
        for _ in range(10):
            await flushed(partition, proxy.url, again=True)
            (entry,) = partition.entries()
            assert entry.next_try is not None
            pauses.append((entry.next_try - datetime.now(UTC)).total_seconds())

    assert [round(pause / 10) for pause in pauses] == [3, 6, 12, 24, 48, 96, 192, 360, 360, 360]


@pytest.mark.parametrize("seconds", [-1, 86_400])
async def test_what_was_put_off_is_sent_when_its_time_comes_and_when_the_clock_was_set_back(
    seconds: int, service: ServiceProcess
) -> None:
    partition, names = five_waiting(service.url, f"due {seconds}")
    for name in names:
        entry = partition.find(name)
        assert entry is not None
        due = datetime.now(UTC) + timedelta(seconds=seconds)
        partition.amend(structs.replace(entry, failures=7, next_try=due))

    assert (await flushed(partition, service.url)).uploaded == 5


async def test_a_service_that_fails_with_everything_is_left_alone_soon(
    service: ServiceProcess,
) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, _ = five_waiting(proxy.url, "all-fail")
        proxy.always("PUT", refuse(500))
        done = await flushed(partition, proxy.url)

        assert proxy.count("PUT") == 3
    assert isinstance(done.failure, errors.ProblemError)
    assert (done.uploaded, done.postponed, done.left, len(partition.entries())) == (0, 3, 3, 5)


async def test_a_service_that_is_not_ready_is_left_alone_at_once(service: ServiceProcess) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, _ = five_waiting(proxy.url, "not-ready")
        proxy.always("PUT", refuse(503))
        proxy.always("GET", refuse(503))
        done = await flushed(partition, proxy.url)

        assert proxy.count("PUT") == 1
    assert (done.postponed, done.left) == (0, 5)
    assert all(entry.failures == 0 for entry in partition.entries())


async def test_a_bit_that_flips_on_the_way_is_no_refusal(service: ServiceProcess) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        partition, names = five_waiting(proxy.url, "flipped")
        proxy.script("PUT", flip_a_bit(service.url))
        first = await flushed(partition, proxy.url)
        second = await flushed(partition, proxy.url, again=True)

        assert (first.uploaded, first.refused, first.postponed, second.uploaded) == (4, 0, 1, 1)
        async with Client(service.url) as client:
            assert await client.content(names[0]) == f"0 {LOG}".encode()


@pytest.mark.parametrize(
    "code", [Code.DAMAGED_ENCODING, Code.DIGEST_MISMATCH, Code.INCOMPLETE_BODY, Code.UNSUPPORTED_ENCODING]
)
async def test_damage_on_the_way_is_tried_again_whatever_it_is_called(code: Code) -> None:
    assert not verdicts.is_permanent(errors.error_of(code, "damaged"))


# --- what is said of an output whose answer is lost ---


@pytest.mark.usefixtures("no_spool")
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_an_output_whose_acknowledgement_was_lost_is_found_and_not_called_lost(
    service: ServiceProcess, way: str
) -> None:
    async with faulty_proxy.running(service.url) as proxy:
        proxy.always("PUT", lose_reply)
        spill = spilled(LOG, session=f"acknowledged-{way}")
        if way == "sync":
            with SyncClient(proxy.url, retries=0) as client:
                kept = await asyncio.to_thread(put_sync, Storage(client), spill)
        else:
            async with Client(proxy.url, retries=0) as loop_client:
                kept = await put(Storage(loop_client), spill)
        async with Client(service.url) as direct:
            stored = await direct.get(spill.id)

    assert (kept.outcome, kept.expires, kept.reason) == (Outcome.CAPTURED, stored.expires, "")


@pytest.mark.usefixtures("no_spool")
async def test_an_output_that_may_be_stored_is_not_called_lost_for_sure(service: ServiceProcess) -> None:
    async with faulty_proxy.running(service.url) as proxy, Client(proxy.url, retries=0) as client:
        proxy.always("PUT", lose_reply)
        proxy.always("GET", reset)
        kept = await put(Storage(client), spilled(LOG, session="doubtful"))

    assert kept.outcome is Outcome.TRUNCATED
    assert kept.reason.endswith("; it may be stored there all the same")


@pytest.mark.usefixtures("no_spool")
async def test_an_output_that_never_left_is_lost_for_sure() -> None:
    async with Client(NOWHERE) as client:
        kept = await put(Storage(client), spilled(LOG))

    assert kept.reason == f"{NOWHERE} cannot be reached: connection refused"


def test_imports_are_no_part_of_the_deadline(tmp_path: Path) -> None:
    """The HTTP library takes longer to import than the service may take."""
    code = """
import builtins, sys, time
from overspill import SyncClient
from overspill.guard.policy import Policy
from overspill.delivery.storage import Storage
from tests.bytecode import copy_package
from tests.client.spooling import Clock, put_sync, spilled

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp":
            time.sleep(2.5)

sys.meta_path.insert(0, Slow())
print(put_sync(Storage(SyncClient(sys.argv[1], retries=0)), spilled("text", wait=2.0)).reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, NOWHERE],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(OVERSPILL_SPOOL=str(tmp_path / "spool")),
    )

    assert done.stdout == f"{NOWHERE} cannot be reached: connection refused\n"


REPLACED = """
import shutil, sys
from overspill import SyncClient
from overspill.spools.flush_job import flush_shortly
from overspill.spools.spool import Spool
from overspill.transfer.caller import load_transport

url, package, is_loaded = sys.argv[1:]
if is_loaded == "loaded":
    load_transport()
shutil.rmtree(package)
with SyncClient(url) as client:
    print(flush_shortly(Spool.default().partition(url, client.address.key), client, 30.0).uploaded)
"""


@pytest.mark.parametrize(("loaded", "uploaded"), [("loaded", "5"), ("", "0")])
def test_an_upgrade_of_the_package_ends_no_process_that_runs(
    service: ServiceProcess, tmp_path: Path, loaded: str, uploaded: str
) -> None:
    """The old files are gone: what was imported works on, and the rest is left to the next process."""
    package = Path(next(iter(overspill.__path__)))
    copy_package(package, tmp_path / "overspill")
    environment = clean_environment(OVERSPILL_SPOOL=str(tmp_path / "spool"), PYTHONPATH=str(tmp_path))
    environment.pop("PYTHONPYCACHEPREFIX", None)
    five_waiting(service.url, f"upgrade {loaded}")
    done = subprocess.run(
        [sys.executable, "-c", REPLACED, service.url, str(tmp_path / "overspill"), loaded],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=environment,
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, uploaded, "")


# --- who flushes, and when ---


def test_one_process_at_a_time_flushes_unasked(service: ServiceProcess) -> None:
    partition, names = five_waiting(service.url, "one-at-a-time")
    with SyncClient(service.url) as client:
        with own_directory.locked(partition.folder.path / ".flush"):
            busy = flush_job.flush_shortly(partition, client, 60.0), flush_job.job(partition, client)
            waiting = len(partition.entries())
        done = flush_job.flush_shortly(partition, client, 60.0)

    assert (busy, waiting) == ((Flushed(), flush_job.RETRY_SECONDS), len(names))
    assert (done.uploaded, partition.entries()) == (5, [])


def test_every_command_uploads_what_waits_and_says_so(service: ServiceProcess, spool_path: Path) -> None:
    shell = Shell(service.url, OVERSPILL_SPOOL=str(spool_path))
    for words in (["run", "--", "echo", "short"], ["ls", "--session", "none"], ["usage"]):
        partition, names = five_waiting(service.url, f"command-{words[0]}")
        done = [shell(*words)]
        while partition.entries() and len(done) < 60:  # on a slow machine two seconds do not suffice
            done.append(shell(*words))

        assert {each.code for each in done} == {0}
        assert any(UPLOADED.search(each.err) for each in done)
        assert shell("stat", names[0]).code == 0


def test_the_exit_code_stays_that_of_the_command(service: ServiceProcess, spool_path: Path) -> None:
    five_waiting(service.url, "exit-code")
    done = Shell(service.url, OVERSPILL_SPOOL=str(spool_path))("run", "--", "sh", "-c", "exit 7")

    assert done.code == 7


def test_the_spools_own_commands_upload_nothing_unasked(service: ServiceProcess, spool_path: Path) -> None:
    partition, _ = five_waiting(service.url, "spool-list")
    listed = Shell(service.url, OVERSPILL_SPOOL=str(spool_path))("spool", "list")

    assert (listed.code, listed.err, len(partition.entries())) == (0, "", 5)


def test_commands_ask_a_silent_service_once_and_then_leave_it_alone(spool_path: Path) -> None:
    with scripted.scripted_in_thread(scripted.silence) as silent:
        partition, _ = five_waiting(silent.url, "silent")
        shell = Shell(silent.url, OVERSPILL_SPOOL=str(spool_path))
        codes = [shell("run", "--", "echo", "short").code for _ in range(3)]

        assert codes == [0, 0, 0]
        assert silent.connections <= 2  # the upload, and whether the service is ready
        assert len(partition.entries()) == 5


# --- put ---


def test_put_keeps_on_this_machine_what_the_service_cannot_take(spool_path: Path, tmp_path: Path) -> None:
    offline = Shell(NOWHERE, OVERSPILL_SPOOL=str(spool_path))
    piped = offline("put", "-", "--label", "job=nightly", "--tool", "make", stdin=LOG.encode())
    (tmp_path / "log").write_text(LOG)
    named = offline("put", str(tmp_path / "log"), "--session", "other")

    assert (piped.code, named.code) == (0, 0)
    assert piped.err.startswith(f"overspill: {piped.capture} is on this machine only, until it is uploaded: ")
    assert offline("cat", piped.capture).out == LOG
    assert (tmp_path / "log").read_text() == LOG
    assert {entry.id for entry in Spool().partition(NOWHERE, "").entries()} == {piped.capture, named.capture}


def test_what_put_kept_is_uploaded_with_all_that_it_was_given(
    own_service: ServiceProcess, spool_path: Path
) -> None:
    shell = Shell(own_service.url, OVERSPILL_SPOOL=str(spool_path))
    own_service.stop()
    words = ["--label", "job=nightly", "--tool", "make", "--content-type", "text/x-log", "--status", "exit 2"]
    kept = shell("put", "-", *words, "--json", stdin=LOG.encode())
    own_service.start()
    partition = Spool().partition(own_service.url, "")
    with SyncClient(own_service.url) as client:
        flush.flush(partition, client)
        entry = client.get(kept.capture)

    assert (entry.labels, entry.tool, entry.content_type, entry.status) == (
        {"job": "nightly", SPOOLED_LABEL: entry.labels[SPOOLED_LABEL]},
        "make",
        "text/x-log",
        "exit 2",
    )
    assert '"labels":{"job":"nightly"}' in kept.out


def test_put_without_a_spool_fails_as_ever() -> None:
    done = Shell(NOWHERE, OVERSPILL_SPOOL="off")("put", "-", stdin=b"text")

    assert (done.code, done.out) == (5, "")
    assert "cannot be reached" in done.err


def test_put_says_why_it_could_not_even_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = Shell(NOWHERE, OVERSPILL_SPOOL=str(tmp_path / "file"))("put", "-", stdin=b"text")

    assert (done.code, done.out) == (5, "")
    assert "It was not kept on this machine: the local spool " in done.err


# --- the log ---


def test_the_log_has_one_line_for_each_change_and_nothing_of_the_outputs(
    own_service: ServiceProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "overspill")
    with SyncClient(own_service.url, retries=0) as client:
        first, second = Storage(client), Storage(client)
        own_service.stop()
        for number in range(3):
            put_sync(first, spilled(f"secret {number} {LOG}", f"a{number}"))
            put_sync(second, spilled(f"secret {number} {LOG}", f"b{number}"))
        for storage in (first, second):
            storage.close()
        own_service.start()
        third = Storage(client)
        for number in range(2):
            put_sync(third, spilled(f"secret {number} {LOG}", f"c{number}"))
        third.close()
        changes = [record for record in caplog.records if "secret" not in record.getMessage()]
        told = [(record.levelname, record.getMessage()) for record in changes]

    assert len(changes) == len(caplog.records)
    spooled = [text for level, text in told if level == "WARNING"]
    assert len(spooled) == 1
    assert spooled[0].startswith("outputs are being spooled in ")
    assert [text for _, text in told].count(f"the service at {own_service.url} takes outputs again") == 1


def test_the_log_says_once_for_all_keys_of_a_service_that_it_fails_and_that_it_works(
    own_service: ServiceProcess, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "overspill.state")
    spool = Spool(tmp_path)

    def store_with_each_key(what: str) -> None:
        clients = [SyncClient(own_service.url, f"key-{number}-of-its-own", retries=0) for number in range(3)]
        storages = [Storage(client, spool=spool) for client in clients]
        for number, storage in enumerate(storages * 2):
            put_sync(storage, spilled(f"{number} {what} {LOG}", f"{what}{number}"))
        for storage, client in zip(storages, clients, strict=True):
            storage.close()
            client.close()

    own_service.stop()
    store_with_each_key("away")
    own_service.start()
    store_with_each_key("back")

    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_the_log_says_once_that_outputs_are_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")
    with SyncClient("http://127.0.0.1:2", retries=0) as client:  # no other test's
        storage = Storage(client)
        for number in range(3):
            put_sync(storage, spilled(LOG, str(number)))

    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("outputs are being cut and NOT stored: ")


def test_an_upload_of_what_waited_is_logged_with_its_number(
    service: ServiceProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "overspill")
    partition, _ = five_waiting(service.url, "logged")
    with SyncClient(service.url) as client:
        flush.flush(partition, client)

    assert [text.partition(" (")[0] for text in caplog.messages] == ["uploaded 5 captures"]


# --- in the guard's own background ---


async def test_a_body_that_is_damaged_on_its_way_is_sent_again_at_once(service: ServiceProcess) -> None:
    async with faulty_proxy.running(service.url) as proxy, Client(proxy.url) as client:
        proxy.script("PUT", flip_a_bit(service.url))
        entry = await client.put(LOG, session="damaged-once")

        assert proxy.count("PUT") == 2
        assert await client.content(entry.id) == LOG.encode()


def test_a_long_output_that_run_stores_does_not_keep_what_waits(
    service: ServiceProcess, spool_path: Path
) -> None:
    shell = Shell(service.url, OVERSPILL_SPOOL=str(spool_path))
    partition, _ = five_waiting(service.url, "after-a-long-one")
    codes = {shell("run", "--", "seq", "30000").code}
    for _ in range(60):
        if partition.entries():  # on a slow machine two seconds do not suffice
            codes.add(shell("run", "--", "seq", "30000").code)

    assert (codes, partition.entries()) == ({0}, [])


def test_what_has_expired_in_a_workspace_goes(tmp_path: Path) -> None:
    clock = Clock()
    workspace = Workspace(tmp_path, clock=clock)
    storage = Storage(None, spool=workspace)
    expired = tmp_path / put_sync(storage, spilled(LOG, "first", ttl=10)).path
    clock.now += 3_600
    put_sync(storage, spilled(LOG, "second"))

    pause = threading.Event()
    assert any(not expired.exists() or pause.wait(0.05) for _ in range(1_200))
