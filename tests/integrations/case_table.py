"""The table of the page on frameworks: which case passes in which framework, as their runs said it.

`uv run python -m tests.integrations.case_table` runs every framework's cases and writes the table; with names
of frameworks it runs these alone, and the other columns stay.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from tests.integrations.runs import FRAMEWORKS, HERE, command, environment
from tests.servers.overspill import ServiceProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PAGE: Final = HERE.parents[1] / "client" / "docs" / "frameworks.md"
HEADING: Final = "## What was tried\n"
HARNESSED: Final = [name for name in FRAMEWORKS if (HERE / name / "harness.py").exists()]
CASES: Final = [
    name.replace("_", " ")
    for name in re.findall(r"^def test_(\w+)", (HERE / "kit" / "cases.py").read_text("utf-8"), re.MULTILINE)
]
_PASSED: Final = "yes"

Column = dict[str, str]
"""The cases of one framework by title: empty if the case passes, else why the framework cannot have it."""


def column(report: Path) -> Column:
    """Return what a run says of the cases of the kit. Of a case's ways, one that is skipped decides."""
    found: Column = {}
    for case in ET.parse(report).iter("testcase"):
        title = case.attrib["name"].partition("[")[0].removeprefix("test_").replace("_", " ")
        skipped = case.find("skipped")
        if title in CASES:
            found[title] = found.get(title, "") or ("" if skipped is None else skipped.attrib["message"])
    return found


def documented() -> dict[str, Column]:
    """Return the columns of the page by framework."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition(HEADING)
    notes = dict(re.findall(r"^(\d+)\. (.+)$", text, re.MULTILINE))
    header, _, *rows = [_cells(line) for line in text.splitlines() if line.startswith("|")] or [[], []]
    return {
        name: {row[0]: notes.get(row[at].strip("()"), "") for row in rows}
        for at, name in enumerate(header)
        if at
    }


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(columns: Mapping[str, Column]) -> str:
    """Return the table, and the reasons below it."""
    names = sorted(columns)
    cells = {title: [columns[name].get(title, "") for name in names] for title in CASES}
    reasons = list(dict.fromkeys(reason for row in cells.values() for reason in row if reason))
    lines = [_line(["case", *names]), _line(["---"] * (len(names) + 1))]
    lines += [_line([title, *(_cell(each, reasons) for each in row)]) for title, row in cells.items()]
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *notes]).strip() + "\n"


def _cell(reason: str, reasons: list[str]) -> str:
    return f"({reasons.index(reason) + 1})" if reason else _PASSED


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def run(names: Iterable[str]) -> dict[str, Column]:
    """Run the cases of these frameworks before a service of their own. Raises `CalledProcessError`."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        service = ServiceProcess(Path(directory))
        service.start()
        try:
            for name in names:
                report = Path(directory, f"{name}.xml")
                variables = environment(name, service.url)
                subprocess.run(command(name, report), check=True, cwd=HERE / name, env=variables)
                found[name] = column(report)
        finally:
            service.stop()
    return found


def main(names: list[str]) -> None:
    """Run frameworks, and write the table into the page."""
    columns = {**documented(), **run(names or HARNESSED)}
    before, heading, rest = PAGE.read_text(encoding="utf-8").partition(HEADING)
    introduction = rest.partition("\n|")[0].strip()
    PAGE.write_text(f"{before}{heading}\n{introduction}\n\n{table(columns)}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
