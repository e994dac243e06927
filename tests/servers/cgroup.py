"""A memory limit for a process under test: a cgroup of its own, where this machine lets us make one.

folder = cgroup.limited(name, size)      # raises Unavailable, saying why
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path("/sys/fs/cgroup")
V1: Final = ROOT / "memory"
ENTER: Final = (
    "import os, runpy; open({file!r}, 'w').write(str(os.getpid())); "
    "runpy.run_module('overspill_service', run_name='__main__', alter_sys=True)"
)
"""What a service's Python runs to be in a cgroup from the start on."""


class CannotLimit(Exception):
    """No cgroup can be made here; the text says why."""


class Cgroup:
    """A cgroup with a limit, v1 or v2."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def program(self) -> Sequence[str]:
        """What Python runs to serve in this cgroup."""
        return "-c", ENTER.format(file=str(self.folder / "cgroup.procs"))

    @property
    def kills(self) -> int:
        """How many processes were killed for lack of memory."""
        with suppress(OSError):
            lines = (self.folder / "memory.events").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        lines = (self.folder / "memory.oom_control").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _is_in_memory(folder: Path) -> bool:
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return any(mount[2] == number and mount[mount.index("-") + 1] == "tmpfs" for mount in mounts)


@contextmanager
def limited(name: str, size: int) -> Iterator[Cgroup]:
    """A cgroup of `size` bytes, removed at the end; nothing may run in it then. Raises `CannotLimit`."""
    if _is_in_memory(Path(tempfile.gettempdir())):
        raise CannotLimit("temporary files are in memory here, and a limit counts them too")
    folder, file = (V1 / name, "memory.limit_in_bytes") if V1.is_dir() else (ROOT / name, "memory.max")
    try:
        folder.mkdir()
    except OSError as error:
        raise CannotLimit(f"no cgroup can be made on {sys.platform}: {error.strerror}") from error
    try:
        try:
            (folder / file).write_text(str(size))
        except OSError as error:
            raise CannotLimit(f"no memory limit can be set: {error.strerror}") from error
        yield Cgroup(folder)
    finally:
        folder.rmdir()
