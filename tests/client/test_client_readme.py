"""The client's page: its examples run as they stand and print what it says; its tables name what there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from overspill import Client, Policy, SyncClient, errors
from overspill.agent_tools.inspect_output import INSPECT_OUTPUT_SCHEMA
from overspill.cli.app import app
from overspill.guard.policy import TOOL_BYTES

from tests.readme_examples import examples_of

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

PATH = Path(__file__).parents[2] / "client" / "README.md"
PAGE = PATH.read_text(encoding="utf-8")
EXAMPLES = examples_of(PATH)


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or a higher one."""
    match = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,2}} |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert match is not None, title
    return match[2]


def rows(title: str) -> dict[str, str]:
    """The second column of a section's tables by the first, whose code marks are taken off."""
    cells = re.findall(r"^\| `(\w+)` \| (.*?) \|", section(title), re.MULTILINE)
    return dict(cells)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_as_it_stands_and_prints_what_the_page_says(
    service: ServiceProcess, number: int
) -> None:
    assert EXAMPLES[number].printed(service) == EXAMPLES[number].stable_output


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 4


def test_the_policys_table_has_every_field_and_its_default() -> None:
    table = rows("The policy")

    assert list(table) == [field.name for field in dataclasses.fields(Policy) if field.init]
    for name, shown in table.items():
        value = getattr(Policy(), name)
        if value is None or isinstance(value, (int, float)):
            words: dict[object, str] = {None: "none", True: "true"}
            assert shown == words.get(
                value, f"{value:,g}" if isinstance(value, float) else f"{value or 0:,d}"
            )
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


def test_the_table_of_commands_has_every_command_and_options_that_there_are() -> None:
    listed = re.findall(
        r"^\| (`[a-z].*?) \| (.*) \|$", section("Command line").partition("exit code")[0], re.MULTILINE
    )
    rows = {name: does for names, does in listed for name in re.findall(r"`((?:spool )?[a-z]+)", names)}
    parser: Any = typer.main.get_command(app)
    commands = {name: each.load() for name, each in parser.commands.items()}
    spooling = commands.pop("spool").commands
    commands |= {f"spool {name}": each for name, each in spooling.items()}

    assert rows.keys() == commands.keys()
    for name, does in rows.items():
        known = {"--install-completion"} | {
            flag for each in commands[name].params for flag in (*each.opts, *each.secondary_opts)
        }
        short = re.findall(r" (-\w)(?=[ `])", does) if name == "grep" else []
        assert {*re.findall(r"--[a-z-]+", does), *short} <= known, name


def test_the_tools_table_has_every_argument() -> None:
    assert set(INSPECT_OUTPUT_SCHEMA["properties"]) <= set(
        re.findall(r"`(\w+)`", section("The tool that reads"))
    )
