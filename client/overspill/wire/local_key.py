"""The key of this machine's user: a file that a service on loopback makes, and its user's clients find.

Other users of the machine can reach a service on loopback too. They cannot read the file.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final

VARIABLE: Final = "OVERSPILL_KEY_FILE"
PRIVATE: Final = stat.S_IRWXG | stat.S_IRWXO
MAX_BYTES: Final = 256


class UnsafeKeyFile(Exception):
    """Others may read or replace the file, so its key proves nothing. The message says what to do."""


def local_key_file() -> Path | None:
    """Return the path of `OVERSPILL_KEY_FILE`, else `overspill/local-key` in the user's settings folder.

    None if the user has no home directory.
    """
    if given := os.environ.get(VARIABLE, "").strip():
        return Path(os.path.expanduser(given))  # noqa: PTH111  (raises nothing without a home)
    folder = _settings_folder()
    return folder / "overspill" / "local-key" if folder.is_absolute() else None


def _settings_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", ""))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Application Support"))  # noqa: PTH111  (as above)
    chosen = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return chosen if chosen.is_absolute() else Path(os.path.expanduser("~/.config"))  # noqa: PTH111  (as above)


def read_local_key(path: Path) -> str:
    """Return the key in the file, empty if this user sees no such file. Raises `UnsafeKeyFile`, `OSError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        if os.path.lexists(path):
            raise
        return ""  # there is none, or it is in another user's home, of which this process was told
    with os.fdopen(descriptor, "rb") as file:
        _require_private(path, os.fstat(file.fileno()))
        return file.read(MAX_BYTES).decode("ascii", "replace").strip()


def _require_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeKeyFile(f"{path} is not a file: remove it, and start the service again")
    if not hasattr(os, "geteuid"):  # Windows: the folder is the user's own
        return
    if status.st_uid != os.geteuid():
        raise UnsafeKeyFile(f"{path} belongs to another user: remove it, and start the service again")
    if status.st_mode & PRIVATE:
        raise UnsafeKeyFile(
            f"others may use {path} (its mode is {stat.S_IMODE(status.st_mode):04o}): "
            "remove it, and start the service again, which makes a new one"
        )
