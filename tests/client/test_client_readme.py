"""The client's pages: examples run as they stand and print what is said; tables name what there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from overspill import Client, Policy, SyncClient, errors
from overspill.advice.usual import TOOL_BYTES
from overspill.agent_tools.inspect_output import INSPECT_OUTPUT_SCHEMA
from overspill.cli.app import COMMANDS
from overspill.cli.command_types import LazyCommand

from tests.readme_examples import examples_of

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

CLIENT = Path(__file__).parents[2] / "client"
DOCS = CLIENT / "docs"
PAGES = [CLIENT / "README.md", *sorted(DOCS.glob("*.md"))]
EXAMPLES = {
    f"{page.stem} {number}": example
    for page in PAGES
    if page.stem != "holdout"  # which test_holdout_page runs
    for number, example in enumerate(examples_of(page), 1)
}
OF_OUR_OWN_PROGRAMS = {
    "OVERSPILL_BASH_START",  # of the shells that `overspill shell` starts
    "OVERSPILL_ZDOTDIR",
    "OVERSPILL_KEY_SECRET",  # the service's, which no tool may see
    "OVERSPILL_PREVIOUS_KEY_SECRET",
}
"""Variables that users of the client neither set nor read."""


def page(name: str) -> str:
    """The text of one of the pages in `docs`."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def options_of(command: str) -> list[click.Option]:
    """The options of a command that its help shows, but for `--help`. Those of all commands are global."""
    room, _, name = command.rpartition(" ")
    loaded: Any = LazyCommand(room or name, "").load()
    return [
        each
        for each in (loaded.commands[name] if room else loaded).params
        if isinstance(each, click.Option) and not each.hidden
    ]


def is_named(option: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_as_it_stands_and_prints_what_the_page_says(
    service: ServiceProcess, name: str
) -> None:
    assert EXAMPLES[name].printed(service) == EXAMPLES[name].stable_output


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) >= 10


def test_the_first_page_leads_to_every_other() -> None:
    links = re.findall(r"\]\(docs/([\w-]+)\.md\)", PAGES[0].read_text(encoding="utf-8"))

    assert sorted(set(links)) == [each.stem for each in PAGES[1:]]


def test_the_page_of_frameworks_leads_to_every_other() -> None:
    links = re.findall(r"\]\(integrations/([\w-]+)\.md\)", page("frameworks"))
    folder = Path(__file__).parents[2] / "client" / "docs" / "integrations"

    assert sorted(set(links)) == sorted(each.stem for each in folder.glob("*.md"))


def test_the_policys_table_has_every_field_and_its_default() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page("policy"), re.MULTILINE))

    assert list(table) == [field.name for field in dataclasses.fields(Policy) if field.init]
    for name, shown in table.items():
        value = getattr(Policy(), name)
        if value is None or isinstance(value, (int, float)):
            words: dict[object, str] = {None: "none", True: "true", False: "false"}
            assert shown == words.get(
                value, f"{value:,g}" if isinstance(value, float) else f"{value or 0:,d}"
            )
    for limit in TOOL_BYTES.values():
        assert f"{limit:,}" in table["tools"]


@pytest.mark.parametrize("client", [Client, SyncClient])
def test_the_clients_table_has_every_method(client: type) -> None:
    methods = {name for name, _ in inspect.getmembers(client, inspect.isroutine) if not name.startswith("_")}
    named = set(re.findall(r"`(\w+)\(", page("client")))

    assert methods <= named


def test_the_table_of_errors_has_every_class() -> None:
    kinds = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.OverspillError)
    }

    assert kinds <= set(re.findall(r"`(\w+)`", page("client")))


def test_the_table_of_commands_has_every_command_and_options_that_there_are() -> None:
    table = page("command-line").partition("| command | does |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| (`[a-z].*?) \| (.*) \|$", table, re.MULTILINE)
    rows = {name: does for names, does in listed for name in re.findall(r"`((?:spool )?[a-z-]+)", names)}
    commands: dict[str, Any] = {name: LazyCommand(name, "").load() for name in COMMANDS}
    spooling = commands.pop("spool").commands
    commands |= {f"spool {name}": each for name, each in spooling.items()}

    assert rows.keys() == commands.keys()
    for name, does in rows.items():
        known = {flag for each in commands[name].params for flag in (*each.opts, *each.secondary_opts)}
        short = re.findall(r" (-\w)(?=[ `])", does) if name == "grep" else []
        assert {*re.findall(r"--[a-z-]+", does), *short} <= known, name


def test_every_option_of_a_command_stands_on_its_page() -> None:
    """In its row, in what follows the table, or on the page that its row leads to."""
    before, _, rest = page("command-line").partition("| command | does |")
    table, _, after = rest.partition("\n\n")
    for row in table.splitlines()[2:]:
        names, does = row.strip("|").split(" | ", 1)
        linked = "".join(page(each) for each in re.findall(r"\(([\w/-]+)\.md\)", does))
        for name in re.findall(r"`((?:spool )?[a-z-]+)", names):
            told = f"{row} {before} {after} {linked}"
            missing = [
                each.opts for each in options_of(name) if not any(is_named(o, told) for o in each.opts)
            ]

            assert missing == [], name


def test_the_table_of_the_environment_has_every_variable_that_the_client_knows() -> None:
    _, _, table = page("client").partition("\n## Environment\n")
    sources = (path.read_text(encoding="utf-8") for path in (CLIENT / "overspill").rglob("*.py"))
    known = {name for source in sources for name in re.findall(r"\bOVERSPILL_[A-Z_]+", source)}

    assert {*re.findall(r"^\| `(OVERSPILL_\w+)`", table, re.MULTILINE)} == known - OF_OUR_OWN_PROGRAMS


def test_the_tools_table_has_every_argument() -> None:
    assert set(INSPECT_OUTPUT_SCHEMA["properties"]) <= set(re.findall(r"`(\w+)`", page("inspect-output")))
