"""Reads and drops what processes write that a child program left behind. Another process does this.

Without a reader, the system would kill such a process as soon as it prints something.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import PurePath
from typing import Final

_READER: Final = "cat"
"""The system's own, whatever `PATH` says. It takes less memory than Python."""
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*[a-z]?")
"""Names of interpreters. In a program that was frozen or embeds Python, `sys.executable` is the agent."""
_READ_ON: Final = """
import os
while os.read(0, 65536):
    pass
"""
_readers: Final[list[subprocess.Popen[bytes]]] = []
"""The processes that read on. Those that have ended are waited for when one is started."""


def drop_rest(reader: int) -> None:
    """Read on from a pipe or terminal that still has writers, and drop it. The caller closes `reader`."""
    poll = select.poll()
    poll.register(reader, 0)
    if not poll.poll(0):  # one without writers reports a hang-up, asked or not
        _start(reader)


def _start(reader: int) -> None:
    """Start a process that reads to the end."""
    os.set_blocking(reader, True)
    _readers[:] = [each for each in _readers if each.poll() is None]
    with suppress(OSError):
        started = subprocess.Popen(  # noqa: S603  (no word of it is given)
            _reading_command(),
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _readers.append(started)


def _reading_command() -> list[str]:
    """Return a command that reads its input to the end: images without a shell have no `cat`."""
    found = shutil.which(_READER, path=os.defpath) or shutil.which(_READER)
    is_python = not hasattr(sys, "frozen") and _PYTHON.fullmatch(PurePath(sys.executable).name)
    if found is None and is_python:
        return [sys.executable, "-I", "-S", "-c", _READ_ON]
    return [found or _READER]
