"""Outside programs that the tests ask: found in this environment or on the machine, and run to their end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def program(name: str) -> str:
    """A program of this environment or of the machine; the test is skipped where there is none."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"no {name} on the PATH")
    return found


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
