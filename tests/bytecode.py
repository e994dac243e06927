"""Keep compiled Python between the processes of a run, where the environment forbids to write it.

The tests start hundreds of Pythons. With `PYTHONDONTWRITEBYTECODE` set, and no package compiled at its
installation, each of them would compile all that it imports.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def keep(folder: Path) -> None:
    """Let this process and those it starts write bytecode to `folder`, unless they may write it anyway."""
    if sys.dont_write_bytecode:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
        sys.dont_write_bytecode = False
