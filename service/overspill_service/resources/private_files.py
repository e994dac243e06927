"""Files and folders that only their user can read, whatever the umask."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = 0o700
FILE: Final = 0o600


def make_private_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing, each only for this user. Raises `OSError`."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=FOLDER, exist_ok=True)


def make_private(file: Path) -> None:
    """Make the file and its folder if they are missing, for this user only. Raises `OSError`.

    An existing file loses all permissions of others, if this user may change that.
    """
    make_private_folder(file.parent)
    os.close(os.open(file, os.O_RDONLY | os.O_CREAT, FILE))
    with suppress(PermissionError):
        file.chmod(file.stat().st_mode & FILE)
