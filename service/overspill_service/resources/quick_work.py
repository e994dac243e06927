"""Work that might block, on the event loop: allowed while it is as quick as it should be.

What the system has in memory is read in less time than a thread takes to begin. A disk that is slow all the
same holds the event loop up once, then threads wait for it for a while. File systems over a network, which
may hang for ever, are left to threads from the start.
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
"""More than the other threads of a busy process take in between."""
PAUSE_SECONDS: Final = 10.0
"""How long threads do the work after it was slow."""


MOUNTS: Final = Path("/proc/self/mountinfo")
LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


class QuickWork:
    """One kind of such work. Belongs to one event loop."""

    def __init__(self, *, is_possible: bool, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._forbidden_until = clock, 0.0 if is_possible else math.inf

    @property
    def is_allowed(self) -> bool:
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
    """Return whether a path lies in a file system of this machine, as far as the system tells. Linux does."""
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
