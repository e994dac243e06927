"""The promises of the file store beyond the contract: durability, privacy, and no traces of a crash."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill_service.errors import StoreFull, StoreUnavailable
from overspill_service.objects import durable_files
from overspill_service.objects.durable_files import SLICE_BYTES
from overspill_service.objects.file import FileStore
from overspill_service.resources.quick_work import is_on_local_disk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

KEY = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa/upload-00000"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    made = FileStore(tmp_path / "data" / "objects")
    yield made
    await made.close()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def modes(folder: Path) -> set[tuple[bool, int]]:
    """Of everything below: whether it is a folder, and its permissions."""
    return {(path.is_dir(), path.stat().st_mode & 0o777) for path in folder.rglob("*")}


@pytest.fixture
def synchronised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are passed to the real fsync, in order."""
    paths: list[str] = []
    fsync = os.fsync

    def observe(descriptor: int) -> None:
        fsync(descriptor)
        paths.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", observe)
    return paths


async def test_a_put_synchronises_every_new_folder_then_the_file_then_its_folder(
    store: FileStore, synchronised: list[str], tmp_path: Path
) -> None:
    await store.put(KEY, [b"x"])

    root = f"{tmp_path}/data/objects"
    folder = f"{root}/v1/tenant/cap_a~"
    [*parents, file, last] = synchronised
    assert parents == [f"{tmp_path}", f"{tmp_path}/data", root, f"{root}/v1", f"{root}/v1/tenant"]
    assert file.startswith(f"{folder}/cap_aaaaaaaaaaaaaaaaaaaa,upload-00000~")
    assert last == folder


async def test_a_large_object_reaches_the_disk_in_slices_so_that_others_do_not_come_behind_all_of_it(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    fdatasync = os.fdatasync

    def observe(descriptor: int) -> None:
        fdatasync(descriptor)
        sizes.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(durable_files, "_SYNCHRONISE_DATA", observe)
    pieces = [os.urandom(3 * SLICE_BYTES + 5), b"", b"short", os.urandom(SLICE_BYTES)]
    await store.put(KEY, pieces)
    whole = b"".join(pieces)

    assert await store.read(KEY, 0, len(whole)) == whole
    assert len(sizes) == 4
    assert max(later - sooner for sooner, later in pairwise([0, *sizes])) <= 2 * SLICE_BYTES


async def test_reads_and_writes_of_a_tenant_wait_for_no_writes_of_another(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, fsync = threading.Event(), os.fsync
    await store.put(KEY, [b"x"])

    def hang(descriptor: int) -> None:
        if "/v1/loud/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            assert go_on.wait(30)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", hang)
    store._quick.forbid()  # so that a thread reads
    loud = [
        asyncio.create_task(store.put(f"v1/loud/cap_aaaaaaaaaaaaaaaaaaaa/upload-{number:05}", [b"y"]))
        for number in range(20)
    ]
    await asyncio.sleep(0.05)
    own = await asyncio.wait_for(store.read(KEY, 0, 1), 20)
    await asyncio.wait_for(store.put(KEY.replace("00000", "00001"), [b"z"]), 20)

    assert own == b"x"
    assert not any(each.done() for each in loud)
    go_on.set()
    await asyncio.gather(*loud)


def tells_what_is_in_memory(folder: Path) -> bool:
    """Whether the file system reads what it has in memory without waiting. One in memory may not."""
    path = folder / "look"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except (AttributeError, OSError):
            return False


async def test_what_is_in_memory_is_read_without_a_thread(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_on_local_disk(tmp_path) or not tells_what_is_in_memory(tmp_path):
        pytest.skip("this file system does not tell what it has in memory, or on which machine it is")
    await store.put(KEY, [b"0123456789"])

    async def refuse(*_: object) -> None:
        raise AssertionError("a thread was asked")

    monkeypatch.setattr(store._readers, "run", refuse)
    reading = store.read(KEY, 2, 3)
    with pytest.raises(StopIteration) as answered:  # it does not even let others run in between
        reading.send(None)

    assert answered.value.value == b"234"


async def test_folders_that_another_process_made_are_synchronised_once_more(
    store: FileStore, synchronised: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data/objects/v1/tenant/cap_a~").mkdir(parents=True)
    await store.put(KEY, [b"x"])
    await store.put(f"{KEY}1", [b"x"])

    assert synchronised.count(f"{tmp_path}/data/objects/v1/tenant") == 1


async def test_a_put_of_an_existing_key_synchronises_its_folder_before_it_returns(
    store: FileStore, synchronised: list[str]
) -> None:
    await store.put(KEY, [b"x"])
    synchronised.clear()
    await store.put(KEY, [b"x"])

    assert synchronised[-1].endswith("/cap_a~")


async def test_a_deletion_is_durable(store: FileStore, synchronised: list[str]) -> None:
    await store.put(KEY, [b"x"])
    synchronised.clear()
    await store.delete([KEY])

    assert len(synchronised) == 1


async def test_puts_leave_no_temporary_files(store: FileStore, tmp_path: Path) -> None:
    await asyncio.gather(*(store.put(KEY, [b"x"]) for _ in range(20)))

    assert [path.name for path in files(tmp_path)] == ["cap_aaaaaaaaaaaaaaaaaaaa,upload-00000"]


async def test_only_the_owner_can_read_what_is_stored(store: FileStore, tmp_path: Path) -> None:
    await store.put(KEY, [b"x"])

    assert modes(tmp_path) == {(True, 0o700), (False, 0o600)}


WRITER = """
    import asyncio, sys, time
    from pathlib import Path
    from overspill_service.objects.file import FileStore

    class Pieces(list):
        def __iter__(self):
            yield bytes(1_000_000)
            print("writing", flush=True)
            time.sleep(600)

    asyncio.run(FileStore(Path(sys.argv[1])).put(sys.argv[2], Pieces([b"x"])))
"""


@pytest.fixture
def interrupted(tmp_path: Path) -> FileStore:
    """A store whose writer was killed in the middle of an object."""
    root = tmp_path / "objects"
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(root), KEY], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(signal.SIGKILL)
    return FileStore(root)


async def test_an_object_whose_writer_was_killed_does_not_exist(interrupted: FileStore) -> None:
    assert [stored async for stored in interrupted.list("")] == []
    with pytest.raises(KeyError):
        await interrupted.read(KEY, 0, 1)


async def test_an_object_whose_writer_was_killed_can_be_put(interrupted: FileStore) -> None:
    await interrupted.put(KEY, [b"again"])

    assert await interrupted.read(KEY, -10, 0) == b"again"


async def test_a_listing_removes_what_a_crash_left_an_hour_ago(
    interrupted: FileStore, tmp_path: Path
) -> None:
    [temporary] = files(tmp_path)
    assert [stored async for stored in interrupted.list("v1/")] == []
    assert temporary.exists()

    os.utime(temporary, (0, time.time() - 3700))
    assert [stored async for stored in interrupted.list("v1/")] == []
    assert not temporary.exists()


async def test_files_that_are_not_ours_are_left_alone(store: FileStore, tmp_path: Path) -> None:
    await store.put(KEY, [b"x"])
    folder = tmp_path / "data/objects"
    (folder / "lost+found").mkdir()
    (folder / "v1/tenant/cap_a~/note to self.txt").write_text("keep")
    (folder / "v1/tenant/link").symlink_to(tmp_path)

    assert [stored.key async for stored in store.list("")] == [KEY]


async def test_a_symbolic_link_is_not_followed_out_of_the_folder(store: FileStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    await store.put(KEY, [b"x"])
    await store.delete([KEY])
    (tmp_path / "data/objects/v1/tenant/cap_a~/cap_aaaaaaaaaaaaaaaaaaaa,upload-00000").symlink_to(secret)

    await store.put(KEY, [b"overwritten?"])
    assert secret.read_text() == "secret"


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond 100 kB: the kernel refuses, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
async def test_where_there_is_no_room_the_store_says_so_and_leaves_nothing(
    store: FileStore, tmp_path: Path
) -> None:
    with pytest.raises(StoreFull, match="limit on the size of files"):
        await store.put(KEY, [bytes(60_000), bytes(60_000)])

    assert files(tmp_path) == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system that is small enough to fill")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_is_told_from_one_that_fails(tiny_disk: Path) -> None:
    store = FileStore(tiny_disk)
    await store.put(KEY, [bytes(500_000)])
    with pytest.raises(StoreFull, match="disk is full"):
        await store.put(f"{KEY}1", [bytes(300_000), bytes(400_000)])

    assert [stored.key async for stored in store.list("")] == [KEY]
    await store.delete([KEY])
    await store.put(f"{KEY}1", [bytes(700_000)])
    await store.close()


async def test_a_disk_that_became_read_only_is_called_that_by_a_probe_too(tiny_disk: Path) -> None:
    store = FileStore(tiny_disk)
    await store.put(KEY, [b"content"])
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)

    for attempt in (store.ping(), store.put(f"{KEY}1", [b"x"])):
        with pytest.raises(StoreUnavailable, match="disk is read-only"):
            await attempt
    assert await store.read(KEY, 0, 7) == b"content"
    await store.close()


async def test_a_folder_that_cannot_be_used_is_unavailable_and_its_path_stays_private(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = FileStore(tmp_path / "file")

    for attempt in (store.ping(), store.put(KEY, [b"x"]), store.read(KEY, 0, 1), store.delete([KEY])):
        with pytest.raises(StoreUnavailable, match="cannot be used") as caught:
            await attempt
        assert str(tmp_path) not in str(caught.value)


async def test_a_disk_that_hangs_is_unavailable_at_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "v1/tenant/cap_a~/cap_aaaaaaaaaaaaaaaaaaaa,upload-00000"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)  # opening one to read blocks until somebody writes

    store = FileStore(tmp_path, deadline=0.05)
    with pytest.raises(StoreUnavailable, match=r"within 0\.05 s"):
        await store.read(KEY, 0, 1)
    path.open("wb").close()  # lets the thread go


async def test_a_folder_that_vanishes_below_the_store_is_made_again(store: FileStore, tmp_path: Path) -> None:
    await store.put(KEY, [b"x"])
    shutil.rmtree(tmp_path / "data/objects/v1")
    await store.put(KEY, [b"y"])

    assert await store.read(KEY, 0, 1) == b"y"


@pytest.mark.parametrize("stands_in", [False, True], ids=["moved", "replaced"])
async def test_a_store_that_is_moved_away_is_refused_and_not_made_anew_until_it_is_back(
    store: FileStore, tmp_path: Path, *, stands_in: bool
) -> None:
    root = tmp_path / "data" / "objects"
    await store.put(KEY, [b"x"])
    (tmp_path / "data").rename(tmp_path / "away")
    if stands_in:
        root.mkdir(parents=True)
    listing = store.list("")
    for attempt in (
        store.put(f"{KEY}1", [b"x"]),
        store.read(KEY, 0, 1),
        store.delete([KEY]),
        store.ping(),
        anext(aiter(listing)),
    ):
        with pytest.raises(StoreUnavailable, match="moved away or replaced"):
            await attempt
    assert files(tmp_path / "data") == []

    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    (tmp_path / "away").rename(tmp_path / "data")
    assert await store.read(KEY, 0, 1) == b"x"
    await store.ping()
