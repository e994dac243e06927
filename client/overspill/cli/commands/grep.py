"""The command grep: the lines of a capture that match."""

from typing import Annotated

import typer

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Ref, SessionFilter
from overspill.cli.search.search import Query, Search, SearchLimits, targets

_EXAMPLES = (
    "overspill grep cap_k3v7q2m5x4c6z2b7n5aa 'error|failed'",
    "overspill grep -i -C 2 timeout cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill grep -wF -e main.rs -e lib.rs call:call_17",
    "overspill grep -c warning cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill grep -oN 'https?://[^ ]+' cap_k3v7q2m5x4c6z2b7n5aa | sort -u",
)


def grep(  # noqa: PLR0913  (one option for each of grep's)
    invocation: Invocation,
    first: Ref,
    second: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help="An RE2 expression. It may come before REF, as with grep."),
    ] = None,
    *,
    patterns: Annotated[
        list[str] | None,
        typer.Option("-e", "--regexp", metavar="PATTERN", help="A pattern; may be repeated."),
    ] = None,
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case", help="Ignore case.")] = False,
    fixed: Annotated[
        bool, typer.Option("-F", "--fixed-strings", "--fixed", help="PATTERN is a plain text.")
    ] = False,
    word: Annotated[bool, typer.Option("-w", "--word-regexp", help="Match whole words only.")] = False,
    invert: Annotated[
        bool, typer.Option("-v", "--invert-match", "--invert", help="Print the lines that do not match.")
    ] = False,
    only: Annotated[
        bool, typer.Option("-o", "--only-matching", help="Print only what matches, each on a line.")
    ] = False,
    count: Annotated[bool, typer.Option("-c", "--count", help="Print only how many lines match.")] = False,
    numbers: Annotated[
        bool,
        typer.Option(
            "-n/-N",
            "--line-number/--no-line-number",
            help="With line numbers (usual), or without.",
            show_default=False,
        ),
    ] = True,
    context: Annotated[
        int,
        typer.Option(
            "-C",
            "--context",
            metavar="NUM",
            min=0,
            max=100,
            help="Show so many lines around each match; also -NUM.",
        ),
    ] = 0,
    before: Annotated[
        int | None,
        typer.Option(
            "-B",
            "--before-context",
            "--before",
            metavar="NUM",
            min=0,
            max=100,
            help="Show so many lines before each match.",
        ),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(
            "-A",
            "--after-context",
            "--after",
            metavar="NUM",
            min=0,
            max=100,
            help="Show so many lines after each match.",
        ),
    ] = None,
    max_matches: Annotated[
        int | None,
        typer.Option(
            "-m",
            "--max-count",
            "--max-matches",
            metavar="NUM",
            min=1,
            help="Stop after so many lines (else 50).",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all lines that match.")] = False,
    from_end: Annotated[bool, typer.Option("--from-end", help="Search from the end.")] = False,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where an earlier search stopped.")
    ] = None,
    extended: Annotated[bool, typer.Option("-E", hidden=True)] = False,  # noqa: ARG001  (RE2 is)
    session: SessionFilter = None,
) -> None:
    """Print the lines that match.

    They are numbered as by grep -n; the exit code is 1 where none matches.
    """
    ref, wanted = targets(first, second, patterns or [])
    query = Query(
        patterns=tuple(wanted),
        fixed=fixed,
        ignore_case=ignore_case,
        word=word,
        invert=invert,
        only=only,
        count=count,
        numbers=numbers,
        context=context,
        before=before,
        after=after,
        from_end=from_end,
        session=session,
    )
    search = Search(ref, query, SearchLimits(max_matches, cursor, is_everything=everything))
    with invocation.source(ref, session) as source:
        found = search.run(invocation, source)
    if search.limits.cursor is not None and not invocation.json:
        _say_more(invocation, search, found)
    if search.incomplete and not invocation.json:
        _say_incomplete(search.incomplete)
    if not found:
        raise typer.Exit(1)


def _say_incomplete(numbers: list[int]) -> None:
    first = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")  # noqa: PLR2004
    lines = f"line {first} is" if len(numbers) == 1 else f"{len(numbers):,} lines ({first}) are"
    output.say(f"{lines} too long to be searched as a whole for this pattern, and may match too")


def _say_more(invocation: Invocation, search: "Search", found: int) -> None:
    lines = "1 line" if found == 1 else f"{found:,} lines"
    output.say(f"stopped at {lines}; go on: {invocation.command(*search.words())}")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, examples=_EXAMPLES, options=COLORED)(grep)
