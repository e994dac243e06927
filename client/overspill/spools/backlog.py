"""The backlog in a partition of the spool, as its guards report it to the service."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from overspill.errors.client_errors import NotSpooled
from overspill.wire import SpoolBacklog

if TYPE_CHECKING:
    from pathlib import Path

    from overspill.spools.partition import Partition


def backlog_of(partition: Partition | None) -> SpoolBacklog | None:
    """Return the backlog; None if there is no spool, or if it cannot be read.

    Takes a system call for each file.
    """
    if partition is None:
        return None
    try:
        if not partition.exists():
            return None
        waiting = partition.folder.stored_files()
        name = _name(partition.folder.path)
    except (NotSpooled, OSError):
        return None
    return SpoolBacklog(
        spool=name,
        captures=len(waiting),
        size=sum(each.size for each in waiting),
        oldest=datetime.fromtimestamp(waiting[0].changed, UTC) if waiting else None,
    )


def _name(folder: Path) -> str:
    """Return a name for the folder that no other machine has, and that reveals nothing about this one."""
    found = folder.stat()
    place = f"{platform.node()}\0{folder}\0{found.st_dev}\0{found.st_ino}"
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
