"""Temporary files that may be long do not go into memory, if there is a disk."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from overspill.agent_tools.recording import MEMORY_BYTES, Recording
from overspill.text import long_files
from overspill.text.buffer import Buffer
from overspill.text.long_files import long_file_folder

IN_MEMORY = Path("/dev/shm")

pytestmark = pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="no folder is surely in memory")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is `/var/tmp`, on a machine whose `/tmp` is in memory."""
    monkeypatch.setattr(long_files, "_USUAL", str(IN_MEMORY))
    monkeypatch.setattr(long_files, "_ON_DISK", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(IN_MEMORY))
    return tmp_path


def test_a_long_recording_is_on_a_disk_although_temporary_files_are_in_memory(disk: Path) -> None:
    with Recording() as recording:
        recording.take(b"line\n" * MEMORY_BYTES)
        named = recording.named()

    assert named is not None
    assert named.parent == disk


def test_a_long_output_of_a_guard_is_on_a_disk_too(disk: Path) -> None:
    buffer = Buffer(memory_bytes=0)
    buffer.write(b"line\n")
    files = [*disk.iterdir()]
    buffer.close()

    assert len(files) == 1


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many bytes are free in folders; much, in others."""
    known: dict[str, int] = {}
    monkeypatch.setattr(
        shutil, "disk_usage", lambda folder: SimpleNamespace(free=known.get(str(folder), 1 << 40))
    )
    return known


def test_what_has_no_room_on_the_disk_is_in_memory(disk: Path, free: dict[str, int]) -> None:
    free[str(disk)] = 1024
    with Recording(start=MEMORY_BYTES, last=MEMORY_BYTES) as recording:
        recording.take(b"line\n" * MEMORY_BYTES)

        assert (recording.is_filed, recording.missing) == (True, "")


def test_a_recording_stays_on_the_disk_that_gets_full_meanwhile(disk: Path, free: dict[str, int]) -> None:
    with Recording() as recording:
        recording.take(b"line\n" * MEMORY_BYTES)
        free[str(disk)] = 1024
        named = recording.named()

    assert named is not None
    assert named.parent == disk


@pytest.mark.usefixtures("disk")
def test_a_folder_that_somebody_has_named_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "named"))

    assert long_file_folder() is None


def test_without_a_better_folder_the_usual_one_is_used(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.rmdir()
    absent = long_file_folder()
    monkeypatch.setattr(long_files, "_ON_DISK", str(IN_MEMORY))

    assert (absent, long_file_folder()) == (None, None)
