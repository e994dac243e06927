"""Runs the cases of the kit, and a framework's own, in its own environment: their dependencies never clash.

The frameworks in `ALWAYS` run with all other tests. `OVERSPILL_FRAMEWORKS=all`, or names with commas between,
runs others too; their packages are downloaded then.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest

from tests.integrations.case_table import CASES, HARNESSED, column, documented
from tests.integrations.runs import FRAMEWORKS, HERE, command, environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

ALWAYS: Final = frozenset({"langchain"})
CASES_SECONDS: Final = 240
MIN_CASES: Final = 8


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
    assert int(ET.parse(report).getroot()[0].attrib["tests"]) >= MIN_CASES
    if framework in HARNESSED:
        again = f"uv run python -m tests.integrations.case_table {framework}"
        assert documented().get(framework) == column(report), f"the page is old: {again}"


def test_the_page_has_every_framework_and_every_case() -> None:
    assert {name: list(each) for name, each in documented().items()} == dict.fromkeys(HARNESSED, CASES)
