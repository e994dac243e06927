"""The spool on disk: what it keeps, for whom, how much, and what it refuses to touch."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from overspill import wire
from overspill.errors import InvalidId
from overspill.errors.client_errors import NotSpooled
from overspill.spools import own_directory
from overspill.spools.location import MAX_BYTES
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool
from overspill.text.body import FileBody

from tests.client.shell import printed_by, run_code, running_code
from tests.client.spooling import NOON, URL, Clock, spilled

if TYPE_CHECKING:
    from pathlib import Path

KEY = "tenant-a-key"
WHY = "the service cannot be reached"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(tmp_path: Path, clock: Clock) -> Spool:
    return Spool(tmp_path / "spool", max_bytes=1_000_000, clock=clock)


@pytest.fixture
def partition(spool: Spool) -> Partition:
    return spool.partition(URL, KEY)


def content_of(partition: Partition, name: str) -> bytes:
    entry = partition.find(name)
    assert entry is not None
    with partition.open(entry) as file:
        return file.read()


def files_of(spool: Spool) -> set[str]:
    return {str(path.relative_to(spool.path)) for path in spool.path.rglob("*") if path.is_file()}


# --- what it keeps ---


def test_what_is_kept_is_found_by_its_id_with_the_very_bytes(partition: Partition) -> None:
    data = bytes(range(256)) * 1_000
    kept = partition.keep(spilled(data), WHY)

    assert content_of(partition, kept.id) == data


def test_an_entry_says_all_that_the_service_would_be_told(partition: Partition) -> None:
    spill = spilled("größe\n" * 100, "call_7", session="whose", tool="grep_search", ttl=600)
    partition.keep(spill, WHY)
    entry = partition.find(spill.id)

    assert entry is not None
    assert (entry.id, entry.size, entry.lines, entry.sha256) == (spill.id, 800, 100, spill.sha256.hex())
    assert (entry.session, entry.call_id, entry.tool, entry.status) == (
        "whose",
        "call_7",
        "grep_search",
        "exit 1",
    )
    assert (entry.ttl, entry.created.timestamp(), entry.expires.timestamp()) == (600, NOON, NOON + 600)
    assert (entry.url, entry.reason, entry.refused) == (URL, WHY, "")


def test_without_a_ttl_it_is_kept_for_a_day(partition: Partition) -> None:
    assert partition.keep(spilled("x"), WHY).expires.timestamp() == NOON + wire.DEFAULT_TTL


def test_the_newest_capture_of_a_call_is_found_by_the_calls_id(partition: Partition, clock: Clock) -> None:
    partition.keep(spilled("first", "call_0"), WHY)
    clock.now += 1
    newest = partition.keep(spilled("second", "call_0"), WHY)
    clock.now += 1
    partition.keep(spilled("third", "call_0", session="other"), WHY)
    found = partition.find("call:call_0", "s")

    assert found is not None
    assert found.id == newest.id


def test_an_empty_call_id_finds_nothing(partition: Partition) -> None:
    partition.keep(spilled("text", ""), WHY)

    for look in (partition.find, partition.dropped):
        with pytest.raises(InvalidId, match="names no tool call"):
            look("call:")


@pytest.mark.parametrize("call_id", ["x" * 10_000, "../../etc/passwd", "\ud800 lone", "a/b\0c"])
def test_any_call_id_can_be_kept_and_found(partition: Partition, call_id: str) -> None:
    kept = partition.keep(spilled("text", call_id), WHY)
    found = partition.find("call:" + call_id)

    assert found is not None
    assert found.id == kept.id


@pytest.mark.parametrize("ref", ["cap_oops", "../../../etc/passwd", "", "cap_" + "a" * 20, "call:never"])
def test_what_was_never_kept_is_not_found(partition: Partition, ref: str) -> None:
    partition.keep(spilled("text"), WHY)

    assert partition.find(ref) is None


def test_keeping_the_same_again_changes_the_expiry_only(
    partition: Partition, spool: Spool, clock: Clock
) -> None:
    partition.keep(spilled("text"), WHY)
    files = files_of(spool)
    clock.now += 60
    kept = partition.keep(spilled("text"), "still down")

    assert files_of(spool) == files
    assert partition.find(kept.id) == kept
    assert kept.expires.timestamp() == NOON + 60 + wire.DEFAULT_TTL


def test_a_body_in_a_file_of_the_same_file_system_is_not_copied(partition: Partition, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"line\n" * 1_000)
    spill = spilled(path.read_bytes())
    filed = FileBody(path, size=spill.size, lines=spill.lines, sha256=spill.sha256)
    partition.spool.make()
    partition.folder.path.mkdir()
    with partition.folder.begin(0, filed.size) as draft:
        draft.fill(".bin", filed)
        part = partition.folder.path / draft.name(".bin")

        assert part.stat().st_ino == path.stat().st_ino
        filed.close()
        assert part.read_bytes() == b"line\n" * 1_000


# --- for whom ---


def test_directories_and_files_are_their_owners_alone(partition: Partition, spool: Spool) -> None:
    before = os.umask(0)
    try:
        partition.keep(spilled("secret"), WHY)
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in [spool.path, *spool.path.rglob("*")]}

    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize(("url", "key"), [(URL, "tenant-b-key"), ("http://other.example", KEY)])
def test_another_tenants_captures_are_not_found(
    spool: Spool, partition: Partition, url: str, key: str
) -> None:
    kept = partition.keep(spilled("text"), WHY)
    other = spool.partition(url, key)

    assert other.find(kept.id) is None
    assert other.entries() == []


def test_no_key_is_anywhere_on_the_disk(partition: Partition, spool: Spool) -> None:
    partition.keep(spilled("text"), WHY)

    assert not any(
        KEY.encode() in (spool.path / name).read_bytes() + name.encode() for name in files_of(spool)
    )


def test_a_directory_that_others_can_write_to_is_refused_with_what_to_do(
    partition: Partition, spool: Spool
) -> None:
    spool.path.mkdir()
    spool.path.chmod(0o770)

    with pytest.raises(NotSpooled, match=r"other users can write to the local spool .*: chmod 700"):
        partition.keep(spilled("text"), WHY)
    assert list(spool.path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(partition: Partition, spool: Spool) -> None:
    spool.path.mkdir(mode=0o700)
    os.chown(spool.path, 12345, 12345)

    with pytest.raises(NotSpooled, match="belongs to another user"):
        partition.keep(spilled("text"), WHY)
    with pytest.raises(NotSpooled, match="belongs to another user"):
        partition.entries()


def test_a_symbolic_link_in_place_of_the_spool_is_not_followed(
    partition: Partition, spool: Spool, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    spool.path.symlink_to(elsewhere)

    with pytest.raises(NotSpooled, match="is a symbolic link"):
        partition.keep(spilled("text"), WHY)
    assert list(elsewhere.iterdir()) == []


def test_symbolic_links_inside_the_spool_are_not_followed(
    partition: Partition, spool: Spool, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("password")
    kept = partition.keep(spilled("text"), WHY)
    content = partition.folder.path / f"{kept.id}.bin"
    content.unlink()
    content.symlink_to(secret)

    with pytest.raises(OSError, match=r"symbolic link|loop"):
        partition.open(kept)


def test_a_partition_that_is_a_symbolic_link_is_not_followed(
    partition: Partition, spool: Spool, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    spool.make()
    partition.folder.path.symlink_to(elsewhere)

    with pytest.raises(NotSpooled, match="the local spool cannot be used"):
        partition.keep(spilled("text"), WHY)
    assert list(elsewhere.iterdir()) == []


# --- how much ---


def test_a_full_spool_keeps_what_it_promised_and_refuses_what_is_new(
    spool: Spool, partition: Partition
) -> None:
    kept = [partition.keep(spilled(str(number) * 300_000), WHY).id for number in range(3)]
    with pytest.raises(NotSpooled, match=r"the local spool is full: it may keep 1\.0 MB"):
        partition.keep(spilled("3" * 300_000), WHY)

    assert [entry.id for entry in partition.entries()] == kept
    assert spool.used() <= spool.max_bytes


def test_there_is_room_again_once_something_was_uploaded(partition: Partition) -> None:
    kept = [partition.keep(spilled(str(number) * 300_000), WHY) for number in range(3)]
    with pytest.raises(NotSpooled, match="full"):
        partition.keep(spilled("3" * 300_000), WHY)
    partition.uploaded(kept[0])

    assert partition.keep(spilled("3" * 300_000), WHY) in partition.entries()


def test_the_bound_holds_for_all_tenants_together(spool: Spool, partition: Partition) -> None:
    first = partition.keep(spilled("1" * 600_000), WHY)
    with pytest.raises(NotSpooled, match="full"):
        spool.partition(URL, "another").keep(spilled("2" * 600_000), WHY)

    assert partition.find(first.id) == first
    assert spool.used() <= spool.max_bytes


def test_an_output_larger_than_the_whole_spool_is_refused_and_nothing_else_goes(partition: Partition) -> None:
    kept = partition.keep(spilled("1" * 600_000), WHY)

    with pytest.raises(NotSpooled, match=r"larger than the whole local spool may be \(1\.2 MB, 1\.0 MB\)"):
        partition.keep(spilled("2" * 1_200_000), WHY)
    assert partition.find(kept.id) == kept


def test_what_is_still_being_written_counts_and_is_not_dropped(partition: Partition) -> None:
    kept = partition.keep(spilled("1" * 100_000), WHY)
    begin = partial(partition.folder.begin, 0, 700_000)
    with partition.spool.room.begin(700_000, begin):
        with pytest.raises(NotSpooled, match="the local spool is full"):
            partition.keep(spilled("2" * 400_000), WHY)

        assert partition.find(kept.id) == kept


def test_what_has_expired_is_not_found_and_goes_before_anything_else(
    partition: Partition, clock: Clock
) -> None:
    lasting = partition.keep(spilled("1" * 400_000, ttl=1_000), WHY)
    short = partition.keep(spilled("2" * 400_000, ttl=10), WHY)
    clock.now += 11
    found = partition.find(short.id)
    partition.keep(spilled("3" * 400_000, ttl=1_000), WHY)
    dropped = partition.dropped(short.id)

    assert found is None
    assert partition.find(lasting.id) == lasting
    assert dropped is not None
    assert dropped.reason == "it had expired"


def test_a_full_disk_is_a_reason_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A process that may write files of 64 KiB only meets the same error path as a full disk."""
    code = f"""
import resource, signal, sys
from overspill.spools.spool import Spool
from overspill.errors.client_errors import NotSpooled
from tests.client.spooling import spilled
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
partition = Spool({str(tmp_path / "spool")!r}).partition("http://x", "")
partition.keep(spilled("small"), "down")
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    partition.keep(spilled("x" * 100_000), "down")
except NotSpooled as error:
    print(error)
print(sorted(path.suffix for path in partition.folder.path.iterdir()))
"""

    assert printed_by(code) == "the local spool cannot be used: File too large\n['.bin', '.json']\n"


def test_a_content_whose_entry_finds_no_room_goes_again(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from overspill.spools.spool import Spool
from overspill.errors.client_errors import NotSpooled
from tests.client.spooling import spilled
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
partition = Spool({str(tmp_path / "spool")!r}).partition("http://x", "")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    partition.keep(spilled("small"), "down")
except NotSpooled:
    print(list(partition.folder.path.iterdir()))
"""

    assert printed_by(code) == "[]\n"


def test_a_disk_without_room_is_named_as_such() -> None:
    error = OSError(28, "No space left on device")

    assert own_directory.disk_reason(error) == "the disk of the local spool is full"


def test_the_environment_says_where_how_much_and_whether(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OVERSPILL_SPOOL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    usual = Spool()
    monkeypatch.setenv("OVERSPILL_SPOOL", str(tmp_path / "here"))
    monkeypatch.setenv("OVERSPILL_SPOOL_BYTES", "5000")
    named = Spool()
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")

    assert (usual.path, usual.max_bytes) == (tmp_path / "overspill" / "spool", MAX_BYTES)
    assert (named.path, named.max_bytes) == (tmp_path / "here", 5_000)
    assert Spool.default() is None


def test_without_a_home_it_is_among_the_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OVERSPILL_SPOOL", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where nobody knows the user
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert Spool().path == tmp_path / f"overspill-{os.getuid()}" / "spool"


@pytest.mark.parametrize(
    ("given", "size"),
    [("10GiB", 10 * 1024**3), ("1 GB", 10**9), ("512kib", 512 * 1024), (" 7B ", 7), ("0", 0)],
)
def test_a_bound_is_given_as_a_size_of_the_service_is(
    monkeypatch: pytest.MonkeyPatch, given: str, size: int
) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL_BYTES", given)

    assert Spool().max_bytes == size


@pytest.mark.parametrize("given", ["many", "-1", "1.5.5GB", "10 gallons", "GiB", "1e3", "٣"])
def test_a_bound_that_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("OVERSPILL_SPOOL_BYTES", given)

    with pytest.raises(ValueError, match="OVERSPILL_SPOOL_BYTES must be a number of bytes"):
        Spool()


# --- processes, threads, crashes ---


def test_two_threads_keep_the_same_capture_at_once(partition: Partition, spool: Spool) -> None:
    spill = spilled("same\n" * 20_000)
    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(lambda _: partition.keep(spill, WHY), range(24)))

    assert {entry.id for entry in kept} == {spill.id}
    assert content_of(partition, spill.id) == spill.body
    assert len(list(partition.folder.path.iterdir())) == 2  # the content and its entry
    assert spool.used() == sum(path.stat().st_size for path in partition.folder.path.iterdir())


def test_processes_keep_at_once_and_the_bound_holds(tmp_path: Path) -> None:
    code = """
import sys
from overspill.errors.client_errors import NotSpooled
from overspill.spools.spool import Spool
from tests.client.spooling import spilled
partition = Spool(sys.argv[1], max_bytes=400_000).partition("http://x", "")
for number in range(20):
    try:
        partition.keep(spilled(f"{sys.argv[2]} {number} " + "x" * 50_000), "down")
    except NotSpooled as error:
        assert "full" in str(error), error
"""
    with ThreadPoolExecutor(4) as threads:
        ended = list(threads.map(lambda number: run_code(code, tmp_path / "spool", number), range(4)))
    spool = Spool(tmp_path / "spool", max_bytes=400_000)

    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * 4
    assert spool.used() <= 400_000
    assert len(spool.partition("http://x", "").entries()) == 7


def test_kill_9_while_spooling_leaves_no_half_capture(tmp_path: Path) -> None:
    """The process is killed at many different moments; what is visible afterwards is whole."""
    code = """
import sys
from overspill.spools.spool import Spool
from tests.client.spooling import spilled
partition = Spool(sys.argv[1]).partition("http://x", "")
print("begins", flush=True)
for number in range(10_000):
    partition.keep(spilled(f"{number}\\n" + "x" * 200_000), "down")
"""
    for round_number in range(8):
        with running_code(code, tmp_path / "spool") as process:  # which is killed at the end
            process.stdout.readline()
            time.sleep(0.003 * (round_number + 1))
    partition = Spool(tmp_path / "spool").partition("http://x", "")

    for entry in partition.entries():
        data = content_of(partition, entry.id)
        assert len(data) == entry.size
        assert entry.id == wire.capture_id(entry.session, entry.call_id, bytes.fromhex(entry.sha256))
        assert entry.sha256 == spilled(data).sha256.hex()
    assert partition.keep(spilled("afterwards"), WHY)


def test_what_a_dead_process_left_goes_and_what_a_live_one_writes_stays(
    partition: Partition, spool: Spool
) -> None:
    partition.keep(spilled("whole"), WHY)
    dead = partition.folder.begin(10, 1_000)
    dead.close()  # as the end of its process does
    (partition.folder.path / f"cap_{'a' * 20}.bin").write_bytes(b"no entry")
    (partition.folder.path / f"cap_{'b' * 20}.json").write_bytes(b"no content")
    with partition.folder.begin(10, 1_000) as live:
        spool.room.tidy()
        left = {path.name for path in partition.folder.path.iterdir()}
        parts = {live.name(".bin"), live.name(".json")}

    assert {name for name in left if name.startswith(".part")} == parts
    assert sorted(name.partition(".")[2] for name in left - parts) == ["bin", "json"]
    assert len(partition.entries()) == 1


def test_a_content_without_an_entry_is_not_there(partition: Partition) -> None:
    kept = partition.keep(spilled("text"), WHY)
    (partition.folder.path / f"{kept.id}.json").unlink()

    assert partition.find(kept.id) is None
    assert partition.entries() == []


NO_ZONE = "2026-11-29T08:00:00"


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", -4), ("lines", -1), ("id", "cap_" + "a" * 20), ("created", NO_ZONE), ("next_try", NO_ZONE)],
    ids=range(5),
)
def test_an_entry_with_what_nobody_wrote_is_passed_over(
    partition: Partition, name: str, value: object
) -> None:
    kept = partition.keep(spilled("text"), WHY)
    entry = partition.folder.path / f"{kept.id}.json"
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {name: value}))

    assert partition.find(kept.id) is None
    assert partition.entries() == []


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"id": 3}'])
def test_a_damaged_entry_is_passed_over(partition: Partition, damage: bytes) -> None:
    kept = partition.keep(spilled("text"), WHY)
    (partition.folder.path / f"{kept.id}.json").write_bytes(damage)
    other = partition.keep(spilled("other"), WHY)

    assert partition.entries() == [other]


def test_a_spool_that_others_keep_locked_is_given_up_soon(partition: Partition, spool: Spool) -> None:
    spool.make()
    with spool.room.locked(), ThreadPoolExecutor(1) as threads:
        kept = threads.submit(partition.keep, spilled("text"), WHY)

        with pytest.raises(NotSpooled, match="others keep the local spool busy"):
            kept.result()


def test_threads_wait_for_each_other_as_long_as_they_may(spool: Spool) -> None:
    """A lock that is held for longer than any one of them would ask for it by default."""
    partition = spool.partition("http://x", "")
    spool.make()
    patient = spilled("patient", wait=60)
    with ThreadPoolExecutor(16) as threads:
        with spool.room.locked():
            kept = [threads.submit(partition.keep, patient, WHY)]
            time.sleep(own_directory.LOCK_TIMEOUT_SECONDS + 0.5)
        kept += [
            threads.submit(partition.keep, spilled(f"{number}", f"c{number}"), WHY) for number in range(100)
        ]

    assert {each.result().id for each in kept} == {entry.id for entry in partition.entries()}


def test_a_process_that_dies_with_the_lock_does_not_keep_it(partition: Partition, spool: Spool) -> None:
    code = f"""
import os
from pathlib import Path
from overspill.spools import own_directory
with own_directory.locked(Path({str(spool.path / ".lock")!r})):
    os.kill(os.getpid(), 9)
"""
    spool.make()
    ended = run_code(code)

    assert ended.returncode == -signal.SIGKILL
    assert partition.keep(spilled("text"), WHY)


def test_a_child_forked_while_the_spool_is_locked_does_not_keep_it_locked(
    partition: Partition, spool: Spool
) -> None:
    spool.make()
    read_end, write_end = os.pipe()
    with spool.room.locked():
        child = os.fork()
        if child == 0:
            os.read(read_end, 1)
            os._exit(0)
    kept = partition.keep(spilled("text"), WHY)
    os.write(write_end, b".")
    os.waitpid(child, 0)

    assert partition.find(kept.id) == kept


# --- reading goes on ---


def test_what_is_open_stays_readable_when_it_is_dropped(partition: Partition) -> None:
    kept = partition.keep(spilled("text"), WHY)
    with partition.open(kept) as file:
        partition.drop([kept.id], "by hand")

        assert file.read() == b"text"
    assert partition.find(kept.id) is None


def test_what_was_uploaded_goes_without_being_counted_as_dropped(partition: Partition) -> None:
    kept = partition.keep(spilled("text"), WHY)
    partition.uploaded(kept)

    assert (partition.find(kept.id), partition.dropped(kept.id)) == (None, None)


def test_reading_a_spool_that_never_was_creates_nothing(spool: Spool, partition: Partition) -> None:
    assert (partition.find("call:x"), partition.entries(), partition.dropped("call:x")) == (None, [], None)
    assert not spool.path.exists()


def test_a_spool_that_was_removed_is_not_tidied_into_being_again(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    Spool(tmp_path / "spool").room.tidy_if_due()

    assert list((tmp_path / "spool").iterdir()) == []
