"""Reads the file into which an agent program has put a long output, before it asks any hook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_READ_CHARS: Final = 256 * 1024


def is_own_file(path: Path) -> bool:
    """Return whether it is a regular file of this user, and no link. A tool may name any file."""
    try:
        return path.is_file() and not path.is_symlink() and path.stat().st_uid == os.getuid()
    except (OSError, ValueError):  # a name that no file can have
        return False


def chunks(path: Path) -> Iterator[str]:
    """Yield the text of a file. Raises `OSError`."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        while chunk := file.read(_READ_CHARS):
            yield chunk
