"""Live captures of commands whose service is killed in the middle: one handle is left, with the whole."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard, Spool, SyncClient, calling, wire
from overspill.agent_tools import live_command
from overspill.agent_tools.source_tools import source_tools
from overspill.spools.flush import flush
from overspill.transfer.sync import running as loop_of
from overspill.wire import State

from tests.client.shell import Shell
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

TOKEN = "ghp_" + "aB3" * 12
BEGUN = f"seq 300000; echo token {TOKEN}; until test -e middle; do sleep 0.05; done; seq 300000; echo last"
COMMAND = f"{BEGUN}; until test -e go-on; do sleep 0.05; done; exit 3"
SIZE = 2 * len("%d\n" * 300_000 % tuple(range(1, 300_001)))


@pytest.fixture(params=["sqlite", "redis"])
def either_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, on either catalog."""
    catalog = "sqlite:" if request.param == "sqlite" else request.getfixturevalue("redis_url")
    with running(ForkedService(tmp_path / "overspill", catalog=catalog)) as own:
        yield own


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_command, "PATIENCE_SECONDS", 0.2)


class Broken:
    """A command of an agent whose live capture breaks off: the service is killed in its middle."""

    def __init__(self, service: ServiceProcess, folder: Path, session: str) -> None:
        self.service, self._folder, self.session = service, folder, session
        self.spool = Spool(folder / "spool")
        self.client = SyncClient(service.url, session=session, retries=0)
        self.guard = Guard(self.client, spool=self.spool)
        self.answer: dict[str, Any] = {}
        self._running = threading.Thread(target=self._run)
        self._running.start()

    def _run(self) -> None:
        with calling("call_1"):
            self.answer = source_tools(self.guard, self._folder)[0].call({"command": COMMAND})

    def captures(self) -> list[wire.Entry]:
        return self.client.list(session=self.session).captures

    def until_live(self) -> str:
        def is_long() -> bool:
            found = self.captures()
            return bool(found) and found[0].size > 1_500_000

        wait_until(is_long, "the live capture")
        return self.captures()[0].id

    def kill(self) -> None:
        """Kill the service, and let the command print more than waits for it."""
        self.service.kill()
        (self._folder / "middle").touch()

    def until_broken(self) -> None:
        wait_until(lambda: not is_sending(self.client), "the producer gives up")

    def end(self) -> None:
        (self._folder / "go-on").touch()
        self._running.join(60)


def is_sending(client: SyncClient) -> bool:
    """Whether a live capture is being sent in the loop thread."""
    calls, _ = loop_of(client)
    tasks = asyncio.all_tasks(calls.thread.loop)
    return any(each.get_name().startswith("live capture") for each in tasks)


def require_whole(broken: Broken, handle: str) -> None:
    entry, content = broken.client.get(handle), broken.client.content(handle)

    assert [(each.id, each.state) for each in broken.captures()] == [(handle, State.COMPLETE)]
    assert broken.answer["overspill"]["capture"] == handle
    assert handle in broken.answer["output"]
    assert (content.endswith(b"300000\nlast\n"), TOKEN.encode() in content) == (True, False)
    assert entry.size > SIZE
    assert (entry.status, entry.labels[wire.EXIT_CODE_LABEL], entry.call_id) == ("exit 3", "3", "call_1")
    assert entry.labels[wire.COMMAND_LABEL].startswith("seq 300000;")


def test_a_command_keeps_its_handle_through_a_service_that_is_killed_and_comes_back(
    either_service: ServiceProcess, tmp_path: Path
) -> None:
    broken = Broken(either_service, tmp_path, "broken-back")
    handle = broken.until_live()
    broken.kill()
    broken.until_broken()
    either_service.start()
    broken.end()
    broken.guard.close()
    flush(broken.spool.partition(broken.client.address.url, broken.client.address.key), broken.client)

    require_whole(broken, handle)


def test_a_command_keeps_its_handle_though_the_service_comes_back_only_later(
    either_service: ServiceProcess, tmp_path: Path
) -> None:
    broken = Broken(either_service, tmp_path, "broken-later")
    handle = broken.until_live()
    broken.kill()
    broken.end()
    partition = broken.spool.partition(broken.client.address.url, broken.client.address.key)
    waiting = partition.find(handle)
    either_service.start()

    def is_uploaded() -> bool:  # by this flush, or by the guard's own
        flush(partition, broken.client)
        return partition.is_empty()

    wait_until(is_uploaded, "the upload")
    broken.guard.close()

    assert waiting is not None
    require_whole(broken, handle)


def test_a_person_keeps_the_handle_of_a_command_whose_service_was_killed(tmp_path: Path) -> None:
    with running(ForkedService(tmp_path / "overspill")) as service:
        shell = Shell(service.url, OVERSPILL_SESSION="person", OVERSPILL_SPOOL=str(tmp_path / "spool"))
        process = shell.start("run", "--", "sh", "-c", COMMAND, cwd=tmp_path, stdout=-1, stderr=-1)
        with SyncClient(service.url, session="person", retries=0) as client:
            wait_until(lambda: client.list(session="person").captures, "the live capture")
            handle = client.list(session="person").captures[0].id
            wait_until(lambda: client.live_status(handle).accepted, "what `run` sends once it knows of it")
            service.kill()
            for name in ("middle", "go-on"):
                (tmp_path / name).touch()
            printed, said = process.communicate(timeout=60)
            service.start()
            flushed = shell("spool", "flush")
            found = client.list(session="person").captures
            content = client.content(handle)

    assert (process.returncode, handle.encode() in printed) == (3, True), said
    assert b"this machine only" in said
    assert flushed.code == 0, flushed
    assert [(each.id, each.state, each.status) for each in found] == [(handle, State.COMPLETE, "exit 3")]
    assert found[0].labels[wire.TERMINAL_LABEL]
    assert content.endswith(b"300000\nlast\n")
