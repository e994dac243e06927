"""How another program starts this very `overspill`."""

from __future__ import annotations

import sys
from pathlib import Path


def own_command() -> list[str]:
    """Return the words that start the program that runs now: its path, or Python and the module."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return [sys.executable, "-m", "overspill"]
    return [str(program.resolve())]
