"""How another program starts the `overspill` of this environment."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

_NAME: Final = "overspill"


def own_command() -> list[str]:
    """Return the words that start it: the path of the program that runs now, or Python and the module.

    What runs now may also be a script that imports `overspill`.
    """
    program = Path(sys.argv[0])
    if program.name != _NAME:
        return [sys.executable, "-m", _NAME]
    return [str(program.resolve())]


def shell_command() -> list[str]:
    """Return the words that start it in a shell with the same PATH: the name alone if that is enough."""
    return [_NAME] if shutil.which(_NAME) else own_command()
