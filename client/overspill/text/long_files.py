"""Where temporary files go that may be long: a folder on a disk.

On many systems `/tmp` is in memory. A long file there takes as much memory as it is long, and a container's
limit counts it. `/var/tmp` is for such files (file-hierarchy(7) of systemd).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

_USUAL: Final = "/tmp"  # noqa: S108  (compared alone)
_ON_DISK: Final = "/var/tmp"  # noqa: S108  (the files have no names)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_IN_MEMORY: Final = {"tmpfs", "ramfs"}


def long_file_folder() -> str | None:
    """Return `/var/tmp` if the folder of `tempfile` is `/tmp`, in memory; else None, which is its own."""
    if _usual() != _USUAL or not _is_in_memory(_USUAL):
        return None
    is_better = os.access(_ON_DISK, os.W_OK | os.X_OK) and not _is_in_memory(_ON_DISK)
    return _ON_DISK if is_better else None


def _usual() -> str | None:
    try:
        return tempfile.gettempdir()
    except OSError:  # there is none
        return None


def _is_in_memory(folder: str) -> bool:
    """Return whether files of the folder are in memory, as far as the system says that."""
    try:
        device = Path(folder).stat().st_dev
        mounts = [line.split() for line in _MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(mount[2] == number and mount[mount.index("-") + 1] in _IN_MEMORY for mount in mounts)
