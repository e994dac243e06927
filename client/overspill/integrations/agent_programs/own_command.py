"""The command with which another program starts the `overspill` of this environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

_NAME: Final = "overspill"
_ACTIVE: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables with the folder of an environment that is active: in this shell, not in the next one."""


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


def lasting_command() -> list[str]:
    """Return the words that start it in any shell of this user, also where no environment is active."""
    active = [Path(folder, "bin") for name in _ACTIVE if (folder := os.environ.get(name))]
    lasting = os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) not in active)
    return [_NAME] if shutil.which(_NAME, path=lasting) else own_command()
