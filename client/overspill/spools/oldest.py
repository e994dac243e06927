r"""The captures that go first when a spool is full, in a file, so that not every put has to look for them.

    <id> <changed> <size> <kept> <folder>\n    one line for each, the oldest last; whoever drops some cuts
                                               their lines off

Only one process at a time uses the file: the one that tidies. All functions raise `OSError`.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final

from overspill.spools import files
from overspill.spools.draft import PART
from overspill.spools.folder import Held

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = ".oldest"
_MOST: Final = 20_000
"""Lines of the file."""
_BLOCK: Final = 64 * 1024
"""Bytes that are read of its end first: lines of some 800 captures, in a millisecond."""


def save(spool: Path, oldest: list[tuple[Held, str]]) -> None:
    """Write captures, oldest first, each with the name of its folder."""
    lines = [_line(held, folder) for held, folder in reversed(oldest[:_MOST])]
    with files.opened(spool) as directory:
        files.remove(directory, PART + _NAME)
        descriptor = files.create(directory, PART + _NAME, 0o600)
        try:
            files.write(descriptor, "".join(lines).encode())
        finally:
            os.close(descriptor)
        os.rename(PART + _NAME, _NAME, src_dir_fd=directory, dst_dir_fd=directory)


def load(spool: Path, size: int) -> list[tuple[Held, str]]:
    """Read the oldest captures that have `size` bytes, or all; the oldest first.

    None where the file is missing, damaged or no file.
    """
    try:
        with files.opened(spool) as directory, files.open_regular(directory, _NAME) as file:
            block = _BLOCK
            while True:
                found = _last(file, block)
                if sum(held.kept for held, _ in found) >= size or block >= os.fstat(file.fileno()).st_size:
                    return found
                block *= 4
    except (OSError, ValueError):
        return []


def _last(file: IO[bytes], block: int) -> list[tuple[Held, str]]:
    """Read whole lines from the last `block` bytes. Raises `OSError` and `ValueError`."""
    start = max(0, os.fstat(file.fileno()).st_size - block)
    file.seek(start)
    lines = file.read().decode().splitlines()
    return [_parsed(line) for line in reversed(lines[1:] if start else lines)]


def cut(spool: Path, taken: list[tuple[Held, str]]) -> None:
    """Take captures off, the first of those that `load` gave."""
    with files.opened(spool) as directory:
        length = files.size(directory, _NAME) - sum(len(_line(*each)) for each in taken)
        descriptor = os.open(_NAME, os.O_WRONLY | os.O_CREAT | files.NO_LINKS, 0o600, dir_fd=directory)
        try:
            os.ftruncate(descriptor, max(0, length))
        finally:
            os.close(descriptor)


def _line(held: Held, folder: str) -> str:
    return f"{held.id} {held.changed!r} {held.size} {held.kept} {folder}\n"


def _parsed(line: str) -> tuple[Held, str]:
    """Raises `ValueError`."""
    name, changed, size, kept, folder = line.split(" ")
    return Held(float(changed), name, int(size), int(kept), 0.0), folder
