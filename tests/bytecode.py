"""Keep compiled Python between the processes of a run, where the environment forbids to write it.

The tests start hundreds of Pythons. With `PYTHONDONTWRITEBYTECODE` set, and no package compiled at its
installation, each of them would compile all that it imports.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def keep(folder: Path) -> None:
    """Let this process and those it starts write bytecode to `folder`, unless they may write it anyway."""
    if sys.dont_write_bytecode:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
        sys.dont_write_bytecode = False


def copy_package(package: Path, to: Path) -> None:
    """Copy a package and what is compiled of it: a process that imports the copy need not compile it again.

    The process must not have `PYTHONPYCACHEPREFIX`.
    """
    shutil.copytree(package, to, ignore=shutil.ignore_patterns("__pycache__"))
    for source in package.rglob("*.py"):
        copy = to / source.relative_to(package)
        compiled = copy.parent / "__pycache__" / os.path.basename(cache_from_source(str(source)))  # noqa: PTH119
        compiled.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # it was not imported yet
            shutil.copyfile(cache_from_source(str(source)), compiled)
