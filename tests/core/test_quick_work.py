"""Work that might block runs on the event loop while it is quick, and on local disks only."""

from __future__ import annotations

from pathlib import Path

import pytest
from overspill_service.resources import quick_work
from overspill_service.resources.quick_work import PAUSE_SECONDS, SLOW_SECONDS, QuickWork, is_on_local_disk

from tests.clock import Clock


def test_work_that_was_slow_is_left_to_threads_for_a_while() -> None:
    clock = Clock()
    work = QuickWork(is_possible=True, clock=clock)
    for seconds, is_allowed in ((SLOW_SECONDS / 2, True), (SLOW_SECONDS * 2, False)):
        with work.watched():
            clock.now += seconds
        assert work.is_allowed is is_allowed
    clock.now += PAUSE_SECONDS

    assert work.is_allowed
    work.forbid()
    assert not work.is_allowed


def test_slow_work_that_fails_is_slow_too() -> None:
    clock = Clock()
    work = QuickWork(is_possible=True, clock=clock)

    def fail() -> None:
        with work.watched():
            clock.now += 1
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    assert not work.is_allowed


def test_what_is_impossible_stays_so() -> None:
    clock = Clock()
    work = QuickWork(is_possible=False, clock=clock)
    clock.now = 1e9

    assert not work.is_allowed


MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /proc rw - proc proc rw
41 22 0:50 / /mnt/a\040share rw,relatime - nfs4 server:/export rw
42 41 254:9 / /mnt/a\040share/local rw - xfs /dev/vdb rw
43 22 0:60 / /mnt/any rw shared:7 master:2 - fuse.sshfs user@host: rw
"""


@pytest.mark.parametrize(
    ("path", "is_local"),
    [
        ("/srv/data", True),
        ("/mnt", True),
        ("/mnt/a share/objects", False),
        ("/mnt/a shared", True),
        ("/mnt/a share/local/objects", True),
        ("/mnt/any/objects", False),
        ("/proc/self", False),
    ],
)
def test_disks_of_this_machine_are_told_from_others(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_local: bool
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    monkeypatch.setattr(quick_work, "MOUNTS", table)

    assert is_on_local_disk(Path(path)) is is_local


def test_a_system_that_does_not_tell_has_no_local_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_work, "MOUNTS", tmp_path / "none")

    assert not is_on_local_disk(tmp_path)
