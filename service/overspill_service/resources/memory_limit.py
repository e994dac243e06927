"""The memory that this process may use: by the limits of its cgroups (v1 and v2), and by the machine's size.

    /proc/self/cgroup      the cgroup of a process: `0::/path` (v2), `4:memory:/path` (v1)
    /proc/self/mountinfo   where its hierarchy is mounted, and from which of its folders on

The limit of every enclosing cgroup counts, so each folder up to the mount is read.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC: Final = Path("/proc/self")
LIMITS: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")
"""Files of a cgroup that hold a number of bytes, or `max`: two of v2, one of v1."""
RESERVED_BYTES: Final = 128 * 2**20
"""Bytes that a process uses besides the budget: code, caches, connections, running threads."""
MIN_BUDGET: Final = 32 * 2**20
"""Bytes for the largest upload, and for the guaranteed parts of the other queues."""
MAX_BUDGET: Final = 512 * 2**20
"""The most bytes that a process takes by default."""


class Mount(NamedTuple):
    """A mounted cgroup hierarchy. `point` is the folder of the cgroup `root`."""

    kind: str
    options: tuple[str, ...]
    root: PurePosixPath
    point: Path


def default_budget(workers: int) -> int:
    """Return the bytes for the reads and uploads of one of `workers` processes.

    It is half of what the process's share of the machine leaves beyond `RESERVED_BYTES`.
    """
    limit = memory_limit()
    share = MAX_BUDGET * 2 + RESERVED_BYTES if limit is None else limit // workers
    return max(MIN_BUDGET, min(MAX_BUDGET, (share - RESERVED_BYTES) // 2))


@cache
def memory_limit(proc: Path = PROC) -> int | None:
    """Return the smallest limit in bytes, None if the system reports none. It is read once."""
    limits = [*_cgroup_limits(proc), *_machine()]
    return min(limits, default=None)


def _machine() -> Iterator[int]:
    if "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_limits(proc: Path) -> Iterator[int]:
    """Yield the limits of this process's cgroup and of all enclosing ones that the file system shows."""
    try:
        mounts = [*map(_mount, (proc / "mountinfo").read_text().splitlines())]
        groups = (proc / "cgroup").read_text().splitlines()
    except OSError:  # not Linux, or /proc is not readable
        return
    for line in groups:
        _, controllers, path = line.split(":", 2)
        for mount in mounts:
            if _belongs(mount, controllers):
                for folder in _folders(mount, PurePosixPath(path)):
                    yield from _limits_in(folder)


def _mount(line: str) -> Mount:
    """Parse a line of mountinfo: its fields 4 and 5, and those behind the `-` (proc_pid_mountinfo(5))."""
    before, _, behind = line.partition(" - ")
    root, point = before.split(" ")[3:5]
    kind, _, options = behind.split(" ", 2)
    return Mount(kind, tuple(options.split(",")), PurePosixPath(root), Path(point))


def _belongs(mount: Mount, controllers: str) -> bool:
    """Return whether a line of /proc/self/cgroup with these controllers belongs to this mount."""
    if not controllers:
        return mount.kind == "cgroup2"
    return mount.kind == "cgroup" and "memory" in controllers.split(",") and "memory" in mount.options


def _folders(mount: Mount, path: PurePosixPath) -> Iterator[Path]:
    """Yield the folder of a cgroup and of its enclosing ones, up to the mount."""
    below = path.relative_to(mount.root) if path.is_relative_to(mount.root) else PurePosixPath()
    if ".." in below.parts:  # a cgroup outside of this process's namespace
        below = PurePosixPath()
    for part in (below, *below.parents):
        yield mount.point / part


def _limits_in(folder: Path) -> Iterator[int]:
    for name in LIMITS:
        try:
            text = (folder / name).read_text().strip()
        except OSError:  # no limit of this kind here
            continue
        if text.isdecimal():
            yield int(text)
