"""Where this package keeps what is the user's own: the spool, and the key of the marks of notices."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def state_folder() -> Path:
    """Return `overspill` in the user's state directory; without a home, one in that for temporary files.

    It may not exist yet.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # noqa: PTH117
        state = os.path.expanduser("~/.local/state")  # noqa: PTH111  (raises nothing where there is no home)
    if state.startswith("~"):
        return Path(tempfile.gettempdir()) / f"overspill-{os.getuid()}"
    return Path(state) / "overspill"
