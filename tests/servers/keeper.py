"""Ends the servers of a process that was killed before it could end them itself.

    keep(process.pid)

A small process of its own has the other end of a pipe, which the system closes with the first one, however
that ends. Only on Linux.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import Final

_ON_LINUX: Final = sys.platform == "linux"


def keep(pid: int) -> None:
    """Have a process killed once this one has ended: with its process group if it leads one."""
    if _ON_LINUX and (start := _start_of(pid)):
        os.write(_pipe(os.getpid()), f"{pid} {start}\n".encode())


def end(pid: int) -> None:
    """Kill a process: with its process group if it leads one."""
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


@cache
def _pipe(_: int) -> int:
    """Return what the keeper of a process reads. A process that was forked has a keeper of its own."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, start_new_session=True
    )
    assert keeper.stdin is not None
    atexit.register(keeper.communicate)
    return keeper.stdin.fileno()


def _start_of(pid: int) -> str:
    """Return when a process was started, "" if it has ended. A later one may have its number."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123  (the keeper imports next to nothing)
            return stat.read().rpartition(") ")[2].split()[19]
    except FileNotFoundError:
        return ""


def _main() -> None:
    for line in sys.stdin.readlines():
        pid, start = line.split()
        if _start_of(int(pid)) == start:
            end(int(pid))


if __name__ == "__main__":
    _main()
