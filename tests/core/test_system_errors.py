"""The table from failures of the system to answers: each with what lacks and what to do."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from overspill.wire import Code
from overspill_service.errors import CatalogUnavailable
from overspill_service.errors.system import failure, resource_failure

FULL, LACKING, STORE = Code.STORE_FULL, Code.OUT_OF_RESOURCES, Code.STORE_UNAVAILABLE


@pytest.mark.parametrize(
    ("number", "code", "failure_name", "advice"),
    [
        (errno.ENOMEM, LACKING, "memory", "grant it more"),
        (errno.EMFILE, LACKING, "descriptors", "ulimit -n"),
        (errno.ENFILE, LACKING, "descriptors", "ulimit -n"),
        (errno.ENOSPC, FULL, "full", "the disk is full"),
        (errno.EDQUOT, FULL, "quota", "raise it"),
        (errno.EFBIG, FULL, "file_size", "ulimit -f"),
        (errno.EROFS, STORE, "read_only", "mount it for writing"),
        (errno.EACCES, STORE, "denied", "give the folder"),
        (errno.EPERM, STORE, "denied", "give the folder"),
        (errno.EIO, STORE, "failing", "system's log"),
    ],
)
def test_each_failure_says_what_lacks_and_what_to_do(
    number: int, code: Code, failure_name: str, advice: str
) -> None:
    known = failure(OSError(number, os.strerror(number)), "the disk")

    assert known is not None
    assert (known.code, known.failure_name) == (code, failure_name)
    assert advice in str(known)
    assert code.status in {503, 507}
    assert known.retry_after is not None


def test_what_the_process_lacks_is_found_behind_other_failures() -> None:
    error = CatalogUnavailable("Redis is not reachable")
    error.__cause__ = ConnectionError("Error 24 connecting")
    error.__cause__.__context__ = OSError(errno.EMFILE, "Too many open files")
    found = resource_failure(error)

    assert found is not None
    assert found.failure_name == "descriptors"


def test_an_error_of_the_program_itself_is_no_lack() -> None:
    assert resource_failure(RuntimeError("dictionary changed size")) is None
    assert resource_failure(FileNotFoundError(errno.ENOENT, "x")) is None


def test_a_real_lack_of_memory_and_of_descriptors_is_found(tmp_path: Path) -> None:
    with pytest.raises(MemoryError) as caught:
        bytearray(2**62)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(OSError, match="open files") as refused:
            (tmp_path / "file").open("w")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    memory, files = resource_failure(caught.value), resource_failure(refused.value)
    assert memory is not None
    assert files is not None
    assert (memory.failure_name, files.failure_name) == ("memory", "descriptors")


THREADS = """
import os, resource, threading
from overspill_service.errors.system import resource_failure

if os.geteuid() == 0:
    os.setuid(54321)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    threading.Thread(target=print).start()
except RuntimeError as error:
    print(resource_failure(error).failure_name)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts threads against this limit")
async def test_a_real_lack_of_threads_is_found() -> None:
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert ended.stdout == "threads\n", ended.stderr


def test_a_disk_without_inodes_is_told_from_a_full_one(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=3", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system with few inodes")
    try:
        (tmp_path / "one").touch()
        (tmp_path / "two").touch()
        with pytest.raises(OSError, match="No space left") as caught:
            (tmp_path / "three").touch()
        known = failure(caught.value, "the disk", tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

    assert known is not None
    assert known.failure_name == "inodes"
    assert "no free inodes" in str(known)
