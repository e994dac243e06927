"""The README and the pages tell the truth."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.readme_examples import examples_of
from tests.readme_tables import api_table, metrics_table, problems_table, settings_table

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for pattern in ("*.md", "client/*.md", "client/docs/*.md", "service/**/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
]
FIRST_PAGES = [ROOT / "README.md", ROOT / "client" / "README.md"]
SOURCES = [
    *(ROOT / "client" / "overspill").rglob("*.py"),
    *(ROOT / "service" / "overspill_service").rglob("*.py"),
]
TWO_SCREENS = 120  # lines
DOCS = ROOT / "service" / "docs"


def test_the_api_table_is_that_of_the_routes() -> None:
    assert api_table() in (DOCS / "api.md").read_text(encoding="utf-8")


def test_the_table_of_problems_is_that_of_the_codes() -> None:
    assert problems_table() in (DOCS / "api.md").read_text(encoding="utf-8")


def test_the_metrics_table_is_that_of_the_declarations() -> None:
    assert metrics_table() in (DOCS / "metrics.md").read_text(encoding="utf-8")


def test_the_settings_table_is_that_of_the_settings() -> None:
    assert settings_table() in (DOCS / "configuration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["client", "service"])
def test_a_package_names_the_pythons_that_the_readme_promises(package: str) -> None:
    project = tomllib.loads((ROOT / package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if " :: Python :: 3." in each]

    assert f"CPython {named[0]} to {named[-1]} on Linux or macOS" in FIRST_PAGES[0].read_text(
        encoding="utf-8"
    )
    assert project["requires-python"] == f">={named[0]}"


def test_the_example_runs_as_it_stands_with_the_guard_and_the_reading_tool(service: ServiceProcess) -> None:
    (example,) = examples_of(ROOT / "README.md")

    assert "guard.wrap" in example.code
    assert "inspection_tool(client)" in example.code
    in_a_python_of_its_own = {"PYTHONUTF8": "1"}  # which a launcher cannot give to a process that it forks
    assert example.printed(service, **in_a_python_of_its_own) == example.stable_output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_first_page_is_read_in_three_minutes(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= TWO_SCREENS


def test_nobody_is_told_to_install_from_an_index_what_is_on_none() -> None:
    told = re.compile(r"install ['\"]?overspill")

    assert [path for path in (*PAGES, *SOURCES) if told.search(path.read_text(encoding="utf-8"))] == []
