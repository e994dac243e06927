"""The directory in which the embedded back ends keep their files unless a setting says otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from overspill_service.settings.errors import SettingError


def data_directory() -> Path:
    """Return the default folder of the embedded back ends: the user's data directory.

    Raises `SettingError` if the user has none.
    """
    try:
        return _data_directory()
    except RuntimeError as error:
        raise SettingError(
            "data: this user has no home directory and HOME is not set; name a folder with --data or "
            "OVERSPILL_DATA"
        ) from error


def _data_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "overspill"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "overspill"
