"""The command top: which tools or tenants spill, as a table that is drawn again and again."""

from typing import Annotated

import click

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED
from overspill.cli.parameters import flag, option
from overspill.cli.parsers import seconds
from overspill.cli.top.figures import FIGURES, NAME


def _sort(text: str) -> str:
    names = {figure.title.lower(): name for name, figure in FIGURES.items()}
    names |= {name: name for name in (NAME, *FIGURES)}
    if text.lower() not in names:
        raise click.BadParameter(f"{text!r} is not a column: use {', '.join((NAME, *FIGURES))}")
    return names[text.lower()]


def _columns(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    return [each for each in (NAME, *FIGURES) if each.startswith(prefix)]


_Since = Annotated[
    int, option(metavar="DURATION", type=seconds, help="How far back to look: seconds, 30m, 2h, 7d.")
]


@command(
    "overspill top",
    "overspill top --since 7d --sort read",
    "overspill top --once --since 1d --fleet",
    "overspill top --json | jq '.rows[] | {tool, outcome, figures}'",
    options=COLORED,
    flushes=False,
)
def top(
    invocation: Invocation,
    *,
    since: _Since = "1h",  # type: ignore[assignment]  # the parser takes it
    interval: Annotated[
        int | None,
        option(
            metavar="DURATION",
            type=seconds,
            help="How often to refresh (default: 5s, or 1m if --since is longer than 3h).",
        ),
    ] = None,
    sort: Annotated[
        str,
        option(
            metavar="COLUMN",
            type=_sort,
            shell_complete=_columns,
            help=f"One of {', '.join((NAME, *FIGURES))}.",
        ),
    ] = "kept-out",
    fleet: Annotated[bool, flag(help="Show all tenants; the key needs the scope fleet.")] = False,
    once: Annotated[bool, flag(help="Print the table once.")] = False,
) -> None:
    """Show which tools spill, and how much.

    Keys: left, right and r sort, space refreshes, q quits. Without a terminal the table is printed once, with
    exact figures. SPILLED is the share of outputs that spilled. LOST is the share that was cut and stored
    nowhere. KEPT OUT and TOKENS are the bytes and tokens that notices kept out of conversations. READ is the
    share of captures that were read back. SAME counts outputs with the same bytes as an earlier one. BURSTS
    counts how often a tool was called again and again after a notice.
    """
    lazy.table_run.run(invocation, window=since, interval=interval, sort=sort, is_fleet=fleet, is_once=once)
