"""The folder for temporary files that may be long: it is on a disk.

On many systems `/tmp` is in memory. A long file there takes as much memory as it is long, and a container's
limit counts it. `/var/tmp` is for such files (file-hierarchy(7) of systemd). If that is nearly full, memory
is better than an output without its middle.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

_USUAL: Final = "/tmp"  # noqa: S108  (compared alone)
_ON_DISK: Final = "/var/tmp"  # noqa: S108  (nobody can guess the names of the files)
_MIN_FREE: Final = 1 << 30
"""Bytes that must be free there."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_IN_MEMORY: Final = {"tmpfs", "ramfs"}


def long_file_folder() -> str | None:
    """Return `/var/tmp` if the folder of `tempfile` is `/tmp`, in memory; else None, which is its own.

    None too if `/var/tmp` is not on a disk that has room. The room may change: ask once for each file.
    """
    if _usual() != _USUAL or not _is_in_memory(_USUAL):
        return None
    return _ON_DISK if _has_room(_ON_DISK) and not _is_in_memory(_ON_DISK) else None


def _usual() -> str | None:
    try:
        return tempfile.gettempdir()
    except OSError:  # there is none
        return None


def _has_room(folder: str) -> bool:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:  # it is not there
        return False
    return free >= _MIN_FREE and os.access(folder, os.W_OK | os.X_OK)


@cache
def _is_in_memory(folder: str) -> bool:
    """Return whether files of the folder are in memory, as far as the system says that. Looks once."""
    try:
        device = Path(folder).stat().st_dev
        mounts = [line.split() for line in _MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(mount[2] == number and mount[mount.index("-") + 1] in _IN_MEMORY for mount in mounts)
