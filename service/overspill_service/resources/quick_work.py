"""Allows work that might block on the event loop, as long as it proves quick.

Reading a file that the system has in memory takes less time than handing the work to a thread. If the disk is
slow after all, it holds the event loop up once; then threads do the work for a while. File systems over a
network may hang without end, so their work is always done in threads.
"""

from __future__ import annotations

import math
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLOW_SECONDS: Final = 0.05
"""Work that takes longer is slow. Other threads of a busy process take less than this in between."""
PAUSE_SECONDS: Final = 10.0
"""How long threads do the work after it was slow."""


MOUNTS: Final = Path("/proc/self/mountinfo")
LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


class QuickWork:
    """One kind of work that is usually quick. Belongs to one event loop."""

    def __init__(self, *, is_possible: bool, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._forbidden_until = clock, 0.0 if is_possible else math.inf

    @property
    def is_allowed(self) -> bool:
        """Whether the work may be done on the event loop now."""
        return self._clock() >= self._forbidden_until

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do the work in the block."""
        start = self._clock()
        try:
            yield
        finally:
            end = self._clock()
            if end - start > SLOW_SECONDS:
                self._forbidden_until = end + PAUSE_SECONDS

    def forbid(self) -> None:
        """Leave the work to threads for a while."""
        self._forbidden_until = self._clock() + PAUSE_SECONDS


def is_on_local_disk(path: Path) -> bool:
    """Return whether a path is known to lie on a disk of this machine.

    Only Linux says this; elsewhere, False.
    """
    try:
        lines = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    whole = path.absolute()
    found = [(point, kind) for point, kind in map(_mount, lines) if whole.is_relative_to(point)]
    return bool(found) and max(found, key=lambda each: len(each[0]))[1] in LOCAL


def _mount(line: str) -> tuple[str, str]:
    """Return where a file system is mounted, and its kind (proc_pid_mountinfo(5))."""
    before, _, after = line.partition(" - ")
    point = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4])
    return point, after.partition(" ")[0]
