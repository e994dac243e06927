"""Runs the cases of a framework in its own environment, so that dependencies never clash."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SLOW: Final = frozenset({"claude_agent_sdk", "copilot_sdk"})
"""Each call starts a program: the odd cases would take minutes."""
FRAMEWORKS: Final = sorted(path.parent.name for path in HERE.glob("*/pyproject.toml"))


def command(framework: str, report: Path) -> list[str]:
    """Return what runs the cases with the locked packages of a framework.

    `--frozen`, not `--locked`: a lock file also lists the client's extras, and those of others do not matter.
    """
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv is not None, "uv makes the frameworks' environments, and is not on the PATH"
    run = [uv, "run", "--quiet", "--frozen", "--project", str(HERE / framework), "--python", sys.executable]
    kit = HERE / "kit"
    files = [kit / "cases.py"] if (HERE / framework / "harness.py").exists() else []
    files += [kit / "odd_cases.py", kit / "stream_cases.py"] if files and framework not in SLOW else []
    files += (HERE / framework).glob("cases.py")
    cases = [f"--junitxml={report}", f"--confcutdir={HERE}", *map(str, files)]
    return [*run, "python", "-m", "pytest", "-c", str(kit / "pytest.ini"), *cases]


def environment(framework: str, url: str) -> dict[str, str]:
    """Return the variables for the cases: none of this run's own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "OVERSPILL", "VIRTUAL_ENV"))
    }
    return {**kept, "KIT_FRAMEWORK": framework, "OVERSPILL_URL": url, "OVERSPILL_SPOOL": "off"}
