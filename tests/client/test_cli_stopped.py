"""Signals that end a command while it stores something: what is kept, what it says, and its exit code."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient
from overspill.spools.spool import Spool
from overspill.wire import State

from tests.client.shell import OVERSPILL, SECONDS, Shell
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.servers.launcher import Piped
    from tests.servers.overspill import ServiceProcess


@pytest.fixture(scope="module")
def hanging_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that tests stop for a while: `hung`."""
    with running(ForkedService(tmp_path_factory.mktemp("overspill"))) as own:
        yield own


@contextmanager
def hung(service: ServiceProcess) -> Iterator[None]:
    os.kill(service.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.pid, signal.SIGCONT)


def put_live(service: ServiceProcess, **variables: str) -> AbstractContextManager[Piped]:
    words = ["put", "--live", "--session", "stopped"]
    return OVERSPILL.piped(words, Shell(service.url, **variables).environment, seconds=SECONDS)


def accepted(client: SyncClient, put: Piped, data: bytes) -> str:
    """Its handle, once the service has `data`, the first that it is given."""
    handle = put.stdout.readline().decode().strip()
    put.stdin.write(data)
    put.stdin.flush()
    wait_until(lambda: client.live_status(handle).accepted == len(data), "what was written")
    return handle


def ended(put: Piped) -> tuple[int, str]:
    return put.process.wait(SECONDS), put.stderr.read().decode()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_live_capture_with_all_that_has_come(service: ServiceProcess, name: str) -> None:
    number = signal.Signals[name]
    with SyncClient(service.url) as client, put_live(service) as put:
        handle = accepted(client, put, b"so far\n")
        put.process.send_signal(number)
        code, said = ended(put)
        entry, content = client.get(handle), client.content(handle)

    assert (code, said) == (
        128 + number,
        f"overspill: ended by {name}; {handle} has all that came until then\n",
    )
    assert (entry.state, entry.status, content) == (State.PARTIAL, f"ended by {name}", b"so far\n")


def test_what_a_service_that_hangs_does_not_take_before_a_signal_ends_it_is_kept_here(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(hanging_service.url) as client,
        put_live(hanging_service, OVERSPILL_SPOOL=str(spool.path)) as put,
    ):
        handle = accepted(client, put, b"so far\n")
        with hung(hanging_service):
            put.stdin.write(b"the rest\n")
            put.stdin.flush()
            put.process.send_signal(signal.SIGTERM)
            code, said = ended(put)
        partition = spool.partition(client.address.url, client.address.key)
        kept = partition.find(handle, None)
        assert kept is not None
        with partition.open(kept) as file:
            content = file.read()

    assert code == 143
    assert f"ended by SIGTERM; {handle} is on this machine only, until it is uploaded: " in said
    assert (kept.status, content) == ("ended by SIGTERM", b"so far\nthe rest\n")


def test_at_its_end_a_live_put_says_what_it_waits_for_and_a_second_signal_what_is_lost(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    with (
        SyncClient(hanging_service.url) as client,
        put_live(hanging_service, OVERSPILL_SPOOL=str(tmp_path)) as put,
    ):
        handle = accepted(client, put, b"so far\n")
        with hung(hanging_service):
            put.stdin.write(b"the rest\n")
            put.stdin.close()
            waits = put.stderr.readline().decode()
            put.process.send_signal(signal.SIGINT)
            put.process.send_signal(signal.SIGTERM)
            code, said = ended(put)

    assert "waiting for the service to take the rest; after a minute without it, that is kept" in waits
    assert (code, said) == (
        130,
        f"overspill: the rest is NOT stored: {handle} has the first 7 bytes\n",
    )
