"""The folder for the user's own state: the spool, and the key for the marks of notices."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path


def state_folder() -> Path:
    """Return `overspill` in the user's state directory.

    If the user has no home or may not write there, as in many containers, return one in the directory for
    temporary files. It may not exist yet. Raises nothing.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # noqa: PTH117
        state = os.path.expanduser("~/.local/state")  # noqa: PTH111  (raises nothing where there is no home)
    return _state_folder(state)


@lru_cache(maxsize=16)
def _state_folder(directory: str) -> Path:
    """Decide once for each process, so that what it keeps stays in one place."""
    state = Path(directory)
    if state.is_absolute() and _may_write(state / "overspill"):
        return state / "overspill"
    name = f"overspill-{os.getuid()}" if hasattr(os, "getuid") else "overspill"
    try:
        return Path(tempfile.gettempdir()) / name
    except FileNotFoundError:  # nothing here can be written, and whoever tries says so
        return Path(os.sep) / name


def _may_write(folder: Path) -> bool:
    """Return whether this user may write to a folder, or make it."""
    existing = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110  (`Path.exists` may raise)
    return os.access(existing, os.W_OK | os.X_OK)
