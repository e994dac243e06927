"""The spool's bound among many processes: what it costs, and what crashes leave."""

from __future__ import annotations

import os
import secrets
import time
from base64 import b32encode
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from overspill.errors.client_errors import NotSpooled
from overspill.spools.ledger import UNKNOWN
from overspill.spools.order import Order
from overspill.spools.partition import Partition, PartitionedSpool
from overspill.spools.spool import Spool

from tests.client.shell import run_code, running_code
from tests.client.spooling import NOON, Clock, spilled
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE: Final = "http://127.0.0.1:1"
WHY: Final = "down"


def total_of(spool: PartitionedSpool) -> int:
    """The running total."""
    with spool.room.locked() as ledger:
        return ledger.read().total


def filled(partition: Partition, count: int, size: int) -> Partition:
    """A partition with `count` more captures of `size` bytes, as if other processes had kept them."""
    pattern = partition.keep(spilled("x" * size, "pattern"), WHY)
    for _ in range(count):
        name = "cap_" + b32encode(secrets.token_bytes(13)).decode().lower()[:20]
        entry = msgspec.structs.replace(pattern, id=name)
        content, known = partition.folder.path / f"{name}.bin", partition.folder.path / f"{name}.json"
        content.write_bytes(b"x" * size)
        known.write_bytes(msgspec.json.encode(entry))
        os.utime(content, (1, 1))
        os.utime(known, (entry.expires.timestamp(),) * 2)
    partition.spool.room.tidy()
    return partition


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The directories that are looked through from now on."""
    looks: list[object] = []
    scandir = os.scandir

    def counting(path: Any) -> Any:
        looks.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    return looks


# --- what a put costs ---


def test_a_put_beside_many_captures_looks_at_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = filled(Spool(tmp_path / "spool").partition(NOWHERE, ""), 300, 10)
    looks = counted_looks(monkeypatch)
    for number in range(20):
        partition.keep(spilled(f"new {number}"), WHY)

    assert looks == []
    assert total_of(partition.spool) == Spool(partition.spool.path).used()


def test_a_full_spool_looks_at_its_captures_once_for_many_puts_that_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    spool = Spool(tmp_path / "spool", max_bytes=3_000_000, clock=clock)
    partition = filled(spool.partition(NOWHERE, ""), 500, 3_000)
    kept = len(partition.entries())
    clock.now += 100
    looks = counted_looks(monkeypatch)
    for number in range(20):
        with pytest.raises(NotSpooled, match="full"):
            partition.keep(spilled(f"{number} " + "y" * 2_000_000, str(number)), WHY)

    assert len(looks) == 1
    assert len(partition.entries()) == kept


def test_the_lock_is_free_while_content_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path / "spool")
    partition = spool.partition(NOWHERE, "")
    free: list[bool] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        with spool.room.locked(5.0):  # other waits for the disk look too, each for a moment
            free.append(True)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    kept = partition.keep(spilled("text"), WHY)
    partition.amend(kept)

    assert free == [True] * 4  # content, entry, their names; the new entry


# --- many processes ---

AGENTS: Final = """
import os, sys
import overspill.transfer.transport, overspill.transfer.compression
from overspill import Guard, Policy, Spool, SyncClient
spool, bound = sys.argv[1:]

def agent(number):
    client = SyncClient("http://127.0.0.1:1", retries=0)
    guard = Guard(client, Policy(), spool=Spool(spool, max_bytes=int(bound)))
    for turn in range(3):
        text = f"{number} {turn}\\n" * 9_000
        done = guard.process_sync(text, tool="build", call_id=f"{number}-{turn}")
        os.write(1, f"{done.outcome} {done.reason}\\n".encode())

children = []
for number in range(10):
    children.append(os.fork())
    if children[-1] == 0:
        try:
            agent(number)
        finally:
            os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("bound", [1024**3, 14_200_000], ids=["filled", "full"])
def test_ten_processes_beside_a_filled_spool_lose_nothing_that_was_promised(
    tmp_path: Path, bound: int
) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=bound)
    filled(spool.partition(NOWHERE, ""), 300, 45_000)
    before = {entry.id for entry in spool.partition(NOWHERE, "").entries()}
    done = run_code(AGENTS, spool.path, bound, environment=clean_environment(), seconds=300)
    told = done.stdout.splitlines()
    refused = [line for line in told if not line.startswith("spooled ")]
    entries = {entry.id for entry in spool.partition(NOWHERE, "").entries()}

    assert len(told) == 30
    assert before <= entries
    assert len(entries) == len(before) + 30 - len(refused)
    assert all("the local spool is full" in line for line in refused)
    assert (refused != []) == (bound == 14_200_000)
    assert spool.used() <= bound
    assert total_of(spool) == spool.used()


def test_one_process_at_a_time_looks_at_all_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=4_000_000)
    partition = filled(spool.partition(NOWHERE, ""), 500, 1_500)
    (spool.path / ".lock").write_bytes(b"damaged")
    looks = counted_looks(monkeypatch)
    with ThreadPoolExecutor(16) as threads:
        puts = [
            threads.submit(partition.keep, spilled(f"{number} " + "y" * 1_000, str(number), wait=60), WHY)
            for number in range(64)
        ]
    kept = {put.result().id for put in puts}

    assert len(looks) == 1
    assert kept <= {entry.id for entry in partition.entries()}


# --- the total ---


@pytest.mark.parametrize(
    "damage", [b"", b"nonsense", b"0" * 63, b"%020d %020d %020d\n" % (10**17, 0, 0)], ids=str
)
def test_a_total_that_is_damaged_or_too_high_is_counted_anew(tmp_path: Path, damage: bytes) -> None:
    spool = Spool(tmp_path / "spool")
    partition = spool.partition(NOWHERE, "")
    before = partition.keep(spilled("before"), WHY)
    (spool.path / ".lock").write_bytes(damage)
    partition.keep(spilled("after"), WHY)

    assert partition.find(before.id) == before
    assert total_of(spool) == spool.used()


def test_a_total_that_is_too_low_is_right_after_tidying(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    partition = spool.partition(NOWHERE, "")
    partition.keep(spilled("x" * 10_000), WHY)
    (spool.path / ".lock").write_bytes(b"%020d %020d %020d\n" % (5, 0, 0))
    spool.room.tidy_if_due()

    assert total_of(spool) == spool.used() > 10_000


def test_a_total_is_right_where_files_were_removed_by_hand(tmp_path: Path) -> None:
    clock = Clock()
    spool = Spool(tmp_path / "spool", max_bytes=100_000, clock=clock)
    partition = spool.partition(NOWHERE, "")
    kept = [partition.keep(spilled(str(number) * 30_000), WHY) for number in range(3)]
    for entry in kept[1:]:
        for path in partition.folder.path.glob(f"{entry.id}.*"):
            path.unlink()
    clock.now += 10
    partition.keep(spilled("3" * 30_000), WHY)

    assert partition.find(kept[0].id) == kept[0]
    assert total_of(spool) == spool.used()


def test_every_change_keeps_the_total_right(tmp_path: Path) -> None:
    clock = Clock()
    spool = Spool(tmp_path / "spool", max_bytes=200_000, clock=clock)
    partition, other = spool.partition(NOWHERE, ""), spool.partition(NOWHERE, "another key")
    totals = []
    for change in (
        lambda: partition.keep(spilled("a" * 10_000), WHY),
        lambda: partition.keep(spilled("a" * 10_000), "kept again, for a reason of another length"),
        lambda: partition.amend(msgspec.structs.replace(partition.entries()[0], refused="why " * 100)),
        lambda: other.keep(spilled("b" * 50_000, ttl=10), WHY),
        lambda: partition.drop([partition.entries()[0].id], "by hand"),
        lambda: partition.drop(["cap_" + "a" * 20], "never there"),
        lambda: [partition.keep(spilled(str(n) * 20_000, ttl=100), WHY) for n in range(6)],
        lambda: partition.uploaded(partition.entries()[0]),
        lambda: setattr(clock, "now", NOON + 1_000),
        spool.room.tidy,
    ):
        change()
        totals.append((total_of(spool), spool.used()))

    assert [total for total, _ in totals] == [used for _, used in totals]
    assert totals[-1] == (0, 0)


def test_two_processes_that_remove_the_same_count_it_once(tmp_path: Path) -> None:
    partition = filled(Spool(tmp_path / "spool").partition(NOWHERE, ""), 100, 1_000)
    code = """
import sys
from overspill.spools.spool import Spool
partition = Spool(sys.argv[1]).partition("http://127.0.0.1:1", "")
for entry in partition.entries():
    partition.uploaded(entry)
"""
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda path: run_code(code, path), [partition.spool.path] * 2))

    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * 2
    assert (total_of(partition.spool), Spool(partition.spool.path).used()) == (0, 0)


def test_kill_9_in_the_middle_of_puts_leaves_a_total_that_is_right_once_tidied(tmp_path: Path) -> None:
    """The processes are killed at many different moments; what they left goes with the next look."""
    code = """
import sys
from overspill.spools.spool import Spool
from tests.client.spooling import spilled
partition = Spool(sys.argv[1], max_bytes=3_000_000).partition("http://127.0.0.1:1", "")
for number in range(10_000):
    if number == 1:
        print("begun", flush=True)  # not before: on a slow machine none would be killed later than that
    kept = partition.keep(spilled(f"{sys.argv[2]} {number}\\n" + "x" * 100_000), "down")
    if number % 3 == 0:
        partition.uploaded(kept)
"""
    spool = Spool(tmp_path / "spool", max_bytes=3_000_000)
    for turn in range(6):
        with running_code(code, spool.path, turn) as process:  # which is killed at the end
            process.stdout.readline()
            time.sleep(0.007 * (turn + 1))  # a moment, any moment
    before = total_of(spool)
    too_high = before - spool.used()
    spool.room.tidy()
    partition = spool.partition(NOWHERE, "")
    names = {path.name.partition(".")[0] for path in partition.folder.path.iterdir()}

    assert before == UNKNOWN or too_high >= 0
    assert total_of(spool) == spool.used()
    assert names - {"dropped"} == {entry.id for entry in partition.entries()}


# --- who has the last word ---


def test_what_nobody_waits_for_any_more_is_not_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    partition = spool.partition(NOWHERE, "")
    order = Order(spilled("text"), WHY, refused="", on_kept=lambda *_: None)
    order.take()

    [failure] = partition.keep_all([order], lambda: None)
    assert isinstance(failure, NotSpooled)
    assert "nobody waits" in str(failure)
    assert list(partition.folder.path.iterdir()) == []
    assert total_of(spool) == 0
