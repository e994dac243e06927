"""The command grep: the lines of a capture that match."""

from typing import TYPE_CHECKING, Annotated

import click

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.exit_codes import ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Ref
from overspill.cli.parameters import argument
from overspill.cli.search.query import Query

if TYPE_CHECKING:
    from overspill.cli.search.search import PrintedSearch


@command(
    "overspill grep cap_k3v7q2m5x4c6z2b7n5aa 'error|failed'",
    "overspill grep -i -C 2 timeout cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill grep -wF -e main.rs -e lib.rs call:call_17",
    "overspill grep -c warning cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill grep -oN 'https?://[^ ]+' cap_k3v7q2m5x4c6z2b7n5aa | sort -u",
    options=COLORED,
)
def grep(
    invocation: Invocation,
    first: Ref,
    second: Annotated[
        str | None,
        argument(metavar="PATTERN", help="An RE2 expression. It may come before REF, as with grep."),
    ] = None,
    *,
    query: Query,
) -> None:
    """Print the lines that match.

    Lines have numbers, as with grep -n. The exit code is 1 if no line matches.
    """
    ref, patterns = lazy.search.targets(first, second, query.patterns)
    search = lazy.search.PrintedSearch(ref, patterns, query)
    with invocation.source(ref, query.session) as source:
        found = search.run(invocation, source)
    if search.cursor is not None and not invocation.json:
        _say_more(invocation, search, found)
    if search.incomplete and not invocation.json:
        _say_incomplete(search.incomplete)
    if not found:
        raise click.exceptions.Exit(ExitCode.NO)


def _say_incomplete(numbers: list[int]) -> None:
    first = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")  # noqa: PLR2004
    lines = f"line {first} is" if len(numbers) == 1 else f"{len(numbers):,} lines ({first}) are"
    output.say(f"{lines} too long to be searched as a whole for this pattern, and may match too")


def _say_more(invocation: Invocation, search: "PrintedSearch", found: int) -> None:
    lines = "1 line" if found == 1 else f"{found:,} lines"
    output.say(f"stopped at {lines}; go on: {invocation.command(*search.words())}")
