"""Install the dependency group `dev` when pytest starts, so that `uv run pytest` is all that anybody types.

`uv run` installs the group `run` alone, because the demo needs no more.
"""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def install() -> None:
    """Add what is missing to the environment that pytest runs in.

    Do nothing where pytest was not started by `uv run`, which names itself in `UV`: that environment is
    its owner's. Raises `CalledProcessError` where uv fails; it says why on stderr.
    """
    uv = os.environ.get("UV")
    if uv and "PYTEST_XDIST_WORKER" not in os.environ:
        subprocess.run(
            [uv, "sync", "--quiet", "--locked", "--inexact", "--active", "--group", "dev"],
            cwd=ROOT,
            check=True,
        )
        importlib.invalidate_caches()
