"""Programs that live shortly: they upload what waits here, and wait once for a service that hangs."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest
from overspill import Guard, SyncClient
from overspill.delivery.storage import Storage
from overspill.spools import flush_job, location
from overspill.spools.absence import Absence, Away
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool
from overspill.wire import Outcome

from tests.client.scripted import scripted_in_thread, silence
from tests.client.shell import run_code
from tests.client.spooling import put_sync, spilled
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LOG: Final = "".join(f"request {number} served\n" for number in range(3_000))
SECONDS: Final = 120

SCRIPT: Final = """
import sys, warnings
from overspill import Guard, SyncClient
from overspill.guard.counts import report_job

report_job.LAST_REPORT = 30.0  # however busy the machine is: a service that takes no report is sent no output
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
kept = []  # as programs keep their guards: what is collected before the end uploads nothing then

def work(url, size):
    client = SyncClient(url, retries=0)
    guard = Guard(client)
    print(guard.process_sync("a line" * size, tool="t", call_id="own").outcome, flush=True)
    kept.append(guard)
    return client, guard
"""
UNCLOSED: Final = "client, guard = work(sys.argv[1], 1)"
SPILLING: Final = "client, guard = work(sys.argv[1], 60_000)"
CLOSED: Final = """
client, guard = work(sys.argv[1], 1)
guard.close()
client.close()
"""
KEEPING: Final = """
from overspill import Band, Policy
from overspill.delivery import storage

storage.FIRST_RETRY_SECONDS = 1000.0  # what is kept waits for the end
client, guard = work(sys.argv[1], 1)
policy = Policy(bands=[Band(destinations=["spool"])])
print(guard.process_sync("a line" * 60_000, tool="t", call_id="kept", policy=policy).outcome, flush=True)
guard.close()
"""
PREFORK: Final = """
import os
client, guard = work(sys.argv[1], 1)
if os.fork():
    sys.exit(os.wait()[1])
print(guard.process_sync("a line", tool="t").outcome, flush=True)
"""
MULTIPROCESSING: Final = """
import multiprocessing, os
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    child = context.Process(target=work, args=(sys.argv[1], 1))
    child.start()
    child.join()
    os._exit(child.exitcode)
"""


@pytest.fixture
def partition(service: ServiceProcess, tmp_path: Path) -> Partition:
    return Spool(tmp_path / "spool").partition(service.url, "")


def script(
    tmp_path: Path, text: str, *arguments: str, exit_seconds: str = "100", forked: bool = True
) -> list[str]:
    """The words that a program prints, which must end well and say nothing else.

    Where it is not `forked`, it is a file that a Python of its own runs.
    """
    environment = clean_environment(
        OVERSPILL_SPOOL=str(tmp_path / "spool"), OVERSPILL_EXIT_SECONDS=exit_seconds
    )
    program = tmp_path / "script.py"
    program.write_text(SCRIPT + text)
    ended = (
        run_code(SCRIPT + text, *arguments, environment=environment)
        if forked
        else subprocess.run(
            [sys.executable, str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=environment,
        )
    )
    assert (
        ended.returncode,
        [line for line in ended.stderr.splitlines() if "being spooled" not in line],
    ) == (
        0,
        [],
    )
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("text", "arguments", "printed"),
    [
        (UNCLOSED, [], ["inline"]),
        (CLOSED, [], ["inline"]),
        (SPILLING, [], ["captured"]),
        (PREFORK, [], ["inline", "inline"]),
        (MULTIPROCESSING, ["fork"], ["inline"]),
        (MULTIPROCESSING, ["spawn"], ["inline"]),
    ],
    ids=["unclosed", "closed", "spilling", "prefork", "multiprocessing fork", "multiprocessing spawn"],
)
def test_a_short_script_uploads_what_others_left(
    service: ServiceProcess,
    partition: Partition,
    tmp_path: Path,
    text: str,
    arguments: list[str],
    printed: list[str],
) -> None:
    if sys.version_info[:2] == (3, 12) and sys.version_info[2] < 2 and text != CLOSED:
        pytest.skip("this Python starts no thread at its end")
    waiting = [
        partition.keep(spilled(f"{n} {LOG}", f"call_{n}", session=tmp_path.name), "down") for n in range(5)
    ]
    told = script(tmp_path, text, service.url, *arguments, forked=text != UNCLOSED and arguments != ["spawn"])

    assert (told, partition.entries()) == (printed, [])
    with SyncClient(service.url) as client:
        assert client.get(waiting[0].id).sha256 == waiting[0].sha256


@pytest.mark.parametrize(("exit_seconds", "left"), [("0", 1), ("100", 0)])
def test_a_script_that_may_take_no_time_at_its_end_leaves_what_waits(
    service: ServiceProcess, partition: Partition, tmp_path: Path, exit_seconds: str, left: int
) -> None:
    told = script(tmp_path, KEEPING, service.url, exit_seconds=exit_seconds)

    assert (told, len(partition.entries())) == (["inline", "spooled"], left)


def test_a_service_that_hangs_is_asked_by_one_process_and_left_alone_by_the_next(tmp_path: Path) -> None:
    with scripted_in_thread(silence) as service:
        first = script(tmp_path, SPILLING.replace("60_000", "60_001"), service.url)
        asked = len(service.received)
        Absence(Spool(tmp_path / "spool").partition(service.url, "")).note(
            Away(time.time() + 50, 0.0, "it hangs")
        )
        second = script(tmp_path, SPILLING + "\nguard.close()", service.url)

    assert (first, second) == (["spooled"], ["spooled"])
    assert (asked >= 1, len(service.received)) == (True, asked)


def test_a_guard_that_waited_in_vain_makes_no_last_report_and_looks_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    with scripted_in_thread(silence) as service, SyncClient(service.url, retries=0) as client:
        with Guard(client) as guard:
            guarded = guard.process_sync(LOG * 2, tool="t")
            asked = len(service.received)

        assert (guarded.outcome, len(service.received)) == (Outcome.SPOOLED, asked)


def test_a_last_report_that_nobody_takes_spares_others_theirs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "spool"))
    with scripted_in_thread(silence) as service, SyncClient(service.url, retries=0) as client:
        with Guard(client) as guard:
            guard.process_sync("short", tool="t")

        assert Absence(Spool().partition(service.url, "")).pause() > 0


def test_once_a_pause_is_over_one_process_tries_the_service_again(
    service: ServiceProcess, partition: Partition
) -> None:
    absence = Absence(partition)
    absence.note(Away(time.time() - 1, time.time() - 9, "it hung"))
    with SyncClient(service.url) as client:
        storages = [Storage(client, spool=Spool(partition.spool.path)) for _ in range(2)]
        may = [storage.health is not None and storage.health.refusal() is None for storage in storages]
        kept = put_sync(storages[0], spilled(LOG, session="one-tries"))
        absence.note(Away(time.time() - 1, time.time() - 9, "it hung"))
        again = put_sync(storages[1], spilled(LOG, "call_2", session="one-tries"))
        for storage in storages:
            storage.close()

    assert (may, kept.outcome) == ([True, False], Outcome.SPOOLED)
    assert "the service has failed since" in kept.reason
    assert (again.outcome, absence.known()) == (Outcome.CAPTURED, None)


def test_a_service_that_is_left_alone_is_not_asked_in_the_background_either(
    service: ServiceProcess, partition: Partition
) -> None:
    partition.keep(spilled(LOG), "down")
    Absence(partition).note(Away(time.time() + 50, time.time(), "it hangs"))
    with SyncClient(service.url) as client:
        pause = flush_job.job(partition, client)
        done = flush_job.flush_shortly(partition, client, 60.0)

    assert pause is not None
    assert 0 < pause <= 50
    assert (done.uploaded, len(partition.entries())) == (0, 1)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1, 2]", b"\xff" * 5000, b'{"next_try": 1.0, "since": 1.0, "why": ""}']
)
def test_a_memory_that_makes_no_sense_or_is_old_is_none(partition: Partition, data: bytes) -> None:
    partition.make()
    (partition.folder.path / ".away").write_bytes(data)

    assert Absence(partition).known() is None


def test_a_memory_that_has_no_place_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    absence = Absence(Spool(tmp_path / "file").partition("http://service.example", ""))
    absence.note(Away(time.time() + 50, time.time(), "it hangs"))
    absence.end()

    assert absence.known() is None


def test_the_time_at_the_end_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = location.exit_seconds()
    monkeypatch.setenv("OVERSPILL_EXIT_SECONDS", "2.5")
    given = location.exit_seconds()
    monkeypatch.setenv("OVERSPILL_EXIT_SECONDS", "soon")

    assert (usual, given) == (0.5, 2.5)
    with (
        SyncClient("http://127.0.0.1:1") as client,
        pytest.raises(ValueError, match="OVERSPILL_EXIT_SECONDS"),
    ):
        Guard(client)


def test_what_is_stored_is_not_called_lost_where_no_memory_is_left_for_its_preview(
    service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def exhausted(*given: object, **_: object) -> str:
        asked.append(given)
        raise MemoryError

    with SyncClient(service.url) as client, Guard(client, session="little-memory") as guard:
        monkeypatch.setattr("overspill.previews.remembered.preview_of", exhausted)
        guarded = guard.process_sync(iter([LOG] * 20), tool="t")

        assert asked
        assert guarded.outcome is Outcome.CAPTURED
        assert client.get(str(guarded.capture)).size == 20 * len(LOG)
    assert "request 0 served" in guarded.value
