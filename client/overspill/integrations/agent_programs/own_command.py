"""How another program starts this very `overspill`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

_NAME: Final = "overspill"


def own_command() -> list[str]:
    """Return the words that start the program that runs now: its path, or Python and the module."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return [sys.executable, "-m", _NAME]
    return [str(program.resolve())]


def shell_command() -> list[str]:
    """Return the words that start it in a shell with the same PATH: the name alone if that is enough."""
    return [_NAME] if shutil.which(_NAME) else own_command()
