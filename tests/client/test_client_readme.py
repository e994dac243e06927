"""The client's page: its examples run as they stand and print what it says; its tables name what there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from overspill import Client, Policy, SyncClient, errors
from overspill.policy import TOOL_BYTES
from overspill.tools import INSPECT_OUTPUT_SCHEMA

from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

PAGE = (Path(__file__).parents[2] / "client" / "README.md").read_text(encoding="utf-8")


class Example(NamedTuple):
    code: str
    output: str | None
    """What the page says that it prints."""


def examples() -> list[Example]:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    following = [*blocks[1:], ("", "")]
    return [
        Example(code, output if kind == "text" else None)
        for (language, code), (kind, output) in zip(blocks, following, strict=True)
        if language == "python"
    ]


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or a higher one."""
    match = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,2}} |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert match is not None, title
    return match[2]


def rows(title: str) -> dict[str, str]:
    """The second column of a section's tables by the first, whose code marks are taken off."""
    cells = re.findall(r"^\| `(\w+)` \| (.*?) \|", section(title), re.MULTILINE)
    return dict(cells)


def stable(text: str) -> str:
    """`text` without what differs from run to run."""
    text = re.sub(r"cap_[a-z2-7]{20}", "cap_id", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "then", text).rstrip()


@pytest.mark.parametrize("number", range(len(examples())))
def test_an_example_runs_as_it_stands_and_prints_what_the_page_says(
    service: ServiceProcess, number: int
) -> None:
    example = examples()[number]
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.code],
        env=clean_environment(OVERSPILL_URL=service.url),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert example.output is not None
    assert stable(result.stdout) == stable(example.output)


def test_the_page_has_examples() -> None:
    assert len(examples()) >= 4


def test_the_policys_table_has_every_field_and_its_default() -> None:
    table = rows("The policy")

    assert list(table) == [field.name for field in dataclasses.fields(Policy) if field.init]
    for name, shown in table.items():
        value = getattr(Policy(), name)
        if value is None or isinstance(value, (int, float)):
            words: dict[object, str] = {None: "none", True: "true"}
            assert shown == words.get(value, f"{value or 0:,g}")
    for limit in TOOL_BYTES.values():
        assert f"{limit:,}" in table["tools"]


@pytest.mark.parametrize("client", [Client, SyncClient])
def test_the_clients_table_has_every_method(client: type) -> None:
    methods = {name for name, _ in inspect.getmembers(client, inspect.isroutine) if not name.startswith("_")}
    named = set(re.findall(r"`(\w+)\(", section("The client")))

    assert methods <= named


def test_the_table_of_errors_has_every_class() -> None:
    kinds = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.OverspillError)
    }

    assert kinds <= set(re.findall(r"`(\w+)`", section("The client")))


def test_the_tools_table_has_every_argument() -> None:
    assert set(INSPECT_OUTPUT_SCHEMA["properties"]) <= set(
        re.findall(r"`(\w+)`", section("The tool that reads"))
    )
