"""The command ls: captures, newest first."""

from collections.abc import Iterator
from typing import Annotated, Any

from overspill import wire
from overspill.cli import lazy, output
from overspill.cli.color import Paint
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Limit
from overspill.cli.parameters import flag, option
from overspill.cli.table import Column, Table
from overspill.errors.client_errors import NotSpooled

_PAGE = 1000
_COLUMNS = (
    Column("CAPTURE"),
    Column("AGE", is_number=True),
    Column("SIZE", is_number=True),
    Column("LINES", is_number=True, rank=3),
    Column("STATE", rank=1, usual="complete"),
    Column("EXPIRES", is_number=True, rank=4),
    Column("TOOL", min_width=8, rank=2),
    Column("SESSION", min_width=8, rank=5),
    Column("CALL ID", min_width=8, rank=6),
)


@command(
    "overspill ls",
    "overspill ls --session run-42 --tool pytest --limit 100",
    "overspill ls --largest",
    "overspill ls --all --json | jq -r '.captures[].id'",
    options=COLORED,
)
def ls(
    invocation: Invocation,
    *,
    session: Annotated[
        str | None, option(metavar="SESSION", help="List captures of this session only.")
    ] = None,
    call_id: Annotated[str | None, option(metavar="ID", help="List captures of this tool call only.")] = None,
    tool: Annotated[str | None, option(metavar="TOOL", help="List captures of this tool only.")] = None,
    limit: Limit = 20,
    everything: Annotated[bool, flag("--all", help="List all captures.")] = False,
    largest: Annotated[
        bool, flag(help="List the largest captures. Of the other options only --limit is allowed.")
    ] = False,
) -> None:
    """List captures, newest first.

    Captures that are only on this machine come first; their state is spooled. A terminal shows the columns
    that fit. A pipe gets all columns, with exact times and sizes in bytes.
    """
    filters = {"session": session, "call_id": call_id, "tool": tool}
    if largest and (everything or any(filters.values())):
        raise CommandFailure("--largest takes no filter and no --all", ExitCode.USAGE)
    with invocation.client() as client:
        if largest:
            pages = iter([client.list(sort=wire.Sort.SIZE, limit=min(_PAGE, limit))])
        else:
            pages = _pages(client, filters, None if everything else limit)
        if invocation.json:
            for page in pages:
                invocation.answer(page)
            return
        waiting = [] if largest else _spooled(invocation, filters)
        is_more = _print_table(invocation, waiting, pages, filters)
    if is_more and not everything:
        output.say("there are more: --limit shows more, --all all of them")


def _print_table(
    invocation: Invocation,
    waiting: list[tuple[wire.Entry, str]],
    pages: Iterator[wire.Listing],
    filters: dict[str, str | None],
) -> bool:
    """Print the spooled captures and then the pages. Return whether there are more.

    Notes come after the table.
    """
    table = Table(_COLUMNS, Paint(invocation.color))
    is_empty, is_incomplete, is_more = not waiting, False, False
    try:
        for page in pages:
            rows = [*waiting, *((entry, entry.state) for entry in page.captures)]
            table.print([_row(table, *row) for row in rows])
            waiting = []
            is_empty = is_empty and not rows
            is_incomplete = is_incomplete or page.incomplete
            is_more = page.cursor is not None
    finally:
        table.print(
            [_row(table, *row) for row in waiting]
        )  # the service was not there: at least what is here
    if is_empty:
        output.say(_empty_hint(filters))
    if is_incomplete:
        output.say("the catalog is being rebuilt: captures may be missing")
    return is_more


def _row(table: Table, entry: wire.Entry, state: str) -> tuple[str, ...]:
    left = "on hold" if entry.held and not table.is_exact else table.time_left(entry.expires)
    figures = (table.age(entry.created), table.size(entry.size), table.count(entry.lines), state, left)
    return (entry.id, *figures, entry.tool, entry.session, entry.call_id)


def _empty_hint(filters: dict[str, str | None]) -> str:
    """Return what to do if nothing is listed."""
    options = [
        f"--{name.replace('_', '-')} {value!r}" for name, value in filters.items() if value is not None
    ]
    if options:
        return f"no capture has {' and '.join(options)}; `overspill ls` lists all"
    return "nothing is stored; store something with `overspill run -- COMMAND` or `overspill put FILE`"


def _spooled(invocation: Invocation, filters: dict[str, str | None]) -> list[tuple[wire.Entry, str]]:
    """Return the spooled captures that match, newest first."""
    try:
        entries = lazy.holder.Holder(invocation.partition()).entries(**filters)
    except NotSpooled as error:
        output.say(str(error))
        return []
    return [(entry, "spooled") for entry in entries]


def _pages(client: Any, filters: dict[str, str | None], limit: int | None) -> Iterator[wire.Listing]:
    cursor: str | None = None
    while True:
        page = client.list(**filters, cursor=cursor, limit=min(_PAGE, _PAGE if limit is None else limit))
        yield page
        cursor = page.cursor
        limit = None if limit is None else limit - len(page.captures)
        if cursor is None or limit == 0:
            return
