"""Runs the cases of the kit, and a framework's own, in its own environment: their dependencies never clash.

The frameworks in `ALWAYS` run with all other tests. `OVERSPILL_FRAMEWORKS=all`, or names with commas between,
runs others too; their packages are downloaded then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

HERE: Final = Path(__file__).parent
FRAMEWORKS: Final = sorted(path.parent.name for path in HERE.glob("*/pyproject.toml"))
ALWAYS: Final = frozenset({"langchain"})
CASES_SECONDS: Final = 240
LEAST_CASES: Final = 8


def asked_for() -> set[str]:
    asked = os.environ.get("OVERSPILL_FRAMEWORKS", "")
    return set(FRAMEWORKS) if asked == "all" else {name.strip() for name in asked.split(",")}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_adapter_passes_every_case(framework: str, service: ServiceProcess, tmp_path: Path) -> None:
    if framework not in ALWAYS | asked_for():
        pytest.skip(f"OVERSPILL_FRAMEWORKS={framework} runs it")
    report = tmp_path / "cases.xml"
    done = subprocess.run(
        command(framework, report),
        cwd=HERE / framework,
        env=environment(framework, service.url),
        capture_output=True,
        text=True,
        timeout=CASES_SECONDS,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout[-8_000:]}{done.stderr[-2_000:]}"
    assert int(ET.parse(report).getroot()[0].attrib["tests"]) >= LEAST_CASES


def command(framework: str, report: Path) -> list[str]:
    """Return what runs the cases with the locked packages of a framework.

    `--frozen`, not `--locked`: a lock file also lists the client's extras, and those of others do not matter.
    """
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv is not None, "uv makes the frameworks' environments, and is not on the PATH"
    run = [uv, "run", "--quiet", "--frozen", "--project", str(HERE / framework), "--python", sys.executable]
    kit = HERE / "kit"
    files = [kit / "cases.py"] if (HERE / framework / "harness.py").exists() else []
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
