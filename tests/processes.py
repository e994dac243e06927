"""The processes and connections of this machine, from Linux' /proc. Tests are skipped elsewhere."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

PROC: Final = Path("/proc")
_ESTABLISHED: Final = "01"


def processes_in(folder: Path) -> list[int]:
    """Return the ids of the processes whose working directory is `folder`."""
    _require_proc()
    found = []
    for process in PROC.iterdir():
        with suppress(OSError):  # it has ended, or is no process
            if (process / "cwd").readlink() == folder:
                found.append(int(process.name))
    return found


def connections_to(url: str) -> int:
    """Return how many connections the server at a URL of IPv4 has (proc_net_tcp.rst of the kernel)."""
    _require_proc()
    other = f":{urlsplit(url).port:04X}"
    rows = [line.split() for line in (PROC / "net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(other) and row[3] == _ESTABLISHED for row in rows)


def _require_proc() -> None:
    if not (PROC / "self/cwd").exists():
        pytest.skip("this system has no /proc")
