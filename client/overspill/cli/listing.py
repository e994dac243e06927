"""Commands that tell what is stored without its content: stat, ls, usage, summary."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overspill import wire
from overspill.cli import output
from overspill.cli.arguments import Ref, Within
from overspill.cli.color import Paint, Style
from overspill.cli.invocation import Invocation, command
from overspill.cli.options import ANSWER, COLORED
from overspill.cli.table import Column, Table, fitting, instant, period, size
from overspill.cli.visible import visible, visible_line
from overspill.spools.capture import entry_of
from overspill.spools.own_directory import NotSpooled

if TYPE_CHECKING:
    from overspill.wire import Entry, Listing, Summary

_EXAMPLES = {
    "stat": ("overspill stat cap_k3v7q2m5x4c6z2b7n5aa", "overspill stat --json call:call_17 | jq .labels"),
    "ls": (
        "overspill ls",
        "overspill ls --session run-42 --tool pytest --limit 100",
        "overspill ls --all --json | jq -r '.captures[].id'",
    ),
    "usage": ("overspill usage", "overspill usage --json"),
    "summary": ("overspill summary cap_k3v7q2m5x4c6z2b7n5aa", "overspill summary call:call_17"),
}
_PAGE = 1000


def stat(at: Invocation, ref: Ref, *, session: Within = None) -> None:
    """Tell what is known of a capture."""
    with at.source(ref, session) as source:
        entry = source.get(ref, session=session)
    if at.json:
        at.answer(entry)
    else:
        _show(_facts(entry))


def ls(
    at: Invocation,
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Of this session.")
    ] = None,
    call_id: Annotated[str | None, typer.Option("--call-id", metavar="ID", help="Of this tool call.")] = None,
    tool: Annotated[str | None, typer.Option("--tool", metavar="TOOL", help="Of this tool.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="NUM", min=1, help="At most so many.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """List captures, newest first.

    Before them stand those that are on this machine only: their state is spooled. A terminal is shown what it
    has room for, a pipe every column, with instants and bytes.
    """
    filters = {"session": session, "call_id": call_id, "tool": tool}
    with at.client() as client:
        pages = _pages(client, filters, None if everything else limit)
        if at.json:
            for page in pages:
                at.answer(page)
            return
        is_more = _tabulate(at, _waiting(at, filters), pages, filters)
    if is_more and not everything:
        output.say("there are more: --limit shows more, --all all of them")


def _tabulate(
    at: Invocation,
    waiting: "list[tuple[Entry, str]]",
    pages: Iterator["Listing"],
    filters: dict[str, str | None],
) -> bool:
    """Print what waits and then the pages; whether there are more. Notes stand behind the table."""
    table = _Table(at)
    is_incomplete, is_more = False, False
    try:
        for page in pages:
            table.print([*waiting, *((entry, entry.state) for entry in page.captures)])
            waiting = []
            is_incomplete = is_incomplete or page.incomplete
            is_more = page.cursor is not None
    finally:
        table.print(waiting)  # the service was not there: at least what is here
    if table.is_empty:
        output.say(_nothing(filters))
    if is_incomplete:
        output.say("the catalog is being rebuilt: captures may be missing")
    return is_more


class _Table:
    """Entries with their states as rows."""

    def __init__(self, at: Invocation) -> None:
        columns = (
            Column("CAPTURE"),
            Column("AGE", is_number=True),
            Column("SIZE", is_number=True),
            Column("LINES", is_number=True),
            Column("STATE", usual="complete"),
            Column("EXPIRES", is_number=True),
            Column("TOOL", least=8, rank=1),
            Column("SESSION", least=8, rank=2),
            Column("CALL ID", least=8, rank=3),
        )
        self._table = Table(columns, Paint(at.color))
        self._now = datetime.now(UTC)
        self.is_empty = True

    def print(self, entries: "Sequence[tuple[Entry, str]]") -> None:
        self.is_empty = self.is_empty and not entries
        self._table.print([self._row(entry, state) for entry, state in entries])

    def _row(self, entry: "Entry", state: str) -> tuple[str, ...]:
        names = (entry.tool, entry.session, entry.call_id)
        if self._table.is_exact:
            figures = (
                instant(entry.created),
                str(entry.size),
                str(entry.lines),
                state,
                instant(entry.expires),
            )
        else:
            age, left = period(self._now - entry.created), period(entry.expires - self._now)
            figures = (age, size(entry.size), f"{entry.lines:,}", state, left)
        return (entry.id, *figures, *names)


def _nothing(filters: dict[str, str | None]) -> str:
    """What to do where nothing is listed."""
    asked = [f"--{name.replace('_', '-')} {value!r}" for name, value in filters.items() if value is not None]
    if asked:
        return f"no capture has {' and '.join(asked)}; `overspill ls` lists all"
    return "nothing is stored; store something with `overspill run -- COMMAND` or `overspill put FILE`"


def _waiting(at: Invocation, filters: dict[str, str | None]) -> "list[tuple[Entry, str]]":
    """The spooled captures that match, newest first."""
    wanted = {name: wire.fit(value) for name, value in filters.items() if value is not None}
    try:
        shelf = at.shelf()
        found = [] if shelf is None else [entry_of(each, "") for each in reversed(shelf.entries())]
    except NotSpooled as error:
        output.say(str(error))
        return []
    return [
        (entry, "spooled")
        for entry in found
        if all(getattr(entry, name) == value for name, value in wanted.items())
    ]


def _pages(client: Any, filters: dict[str, str | None], limit: int | None) -> Iterator["Listing"]:
    cursor: str | None = None
    while True:
        page = client.list(**filters, cursor=cursor, limit=min(_PAGE, _PAGE if limit is None else limit))
        yield page
        cursor = page.cursor
        limit = None if limit is None else limit - len(page.captures)
        if cursor is None or limit == 0:
            return


def usage(at: Invocation) -> None:
    """Tell what the tenant has stored, and its limits."""
    with at.client() as client:
        used = client.usage()
    if at.json:
        at.answer(used)
        return
    _show(
        {
            "tenant": used.tenant,
            "captures": _of(used.captures, used.max_captures),
            "content": f"{used.size:,} bytes",
            "stored": f"{_of(used.stored_size, used.max_stored_size)} bytes",
            "oldest": instant(used.oldest) if used.oldest else "-",
            "largest capture": f"{used.max_capture_size:,} bytes",
            "kept": f"{used.default_ttl:,} s, at most {used.max_ttl:,} s",
        }
    )
    if used.incomplete:
        output.say("the catalog is being rebuilt: the totals may be too low")


def summary(at: Invocation, ref: Ref, *, session: Within = None) -> None:
    """Tell what a capture looks like.

    That is: totals, first and last lines, repeated lines, errors, warnings, the shape of its JSON.
    """
    with at.source(ref, session) as source:
        found = source.summary(ref, session=session)
    if at.json:
        at.answer(found)
    else:
        _summarise(found, Paint(at.color), raw=at.raw)


def _summarise(found: "Summary", paint: Paint, *, raw: bool) -> None:
    _show(
        {
            "size": f"{found.total_bytes:,} bytes, {found.total_lines:,} lines, {found.empty_lines:,} empty",
            "longest line": f"{found.longest_line:,} bytes",
            "type": f"{found.content_type} ({found.kind})",
            "errors": _severity(found.errors),
            "warnings": _severity(found.warnings),
        }
    )
    shown = (lambda text: text) if raw else visible
    sections = {
        "first lines": found.first_lines,
        "last lines": found.last_lines,
        "repeated": [
            f"{each.count:,} times from line {each.first_line:,}: {each.line}" for each in found.repeated
        ],
        "JSON": (found.json_shape or "").splitlines(),
    }
    for title, lines in sections.items():
        if lines:
            output.line(paint(f"{title}:", Style.HEADER))
            for each in lines:
                output.line(f"  {fitting(shown(each), 2)}")
    if found.truncated:
        output.say(f"only the first {found.scanned_bytes:,} bytes were looked at")


def _severity(found: Any) -> str:
    numbers = ", ".join(f"{number:,}" for number in found.line_numbers)
    return f"{found.count:,}{f' (lines {numbers})' if numbers else ''}"


def _facts(entry: "Entry") -> dict[str, str]:
    facts = {
        "capture": entry.id,
        "state": entry.state,
        "size": f"{entry.size:,} bytes, {entry.lines:,} lines",
        "stored": f"{entry.stored_size:,} bytes",
        "type": f"{entry.content_type} ({entry.kind})",
        "sha256": entry.sha256,
        "tool": entry.tool,
        "session": entry.session,
        "call id": entry.call_id,
        "status": entry.status,
        "created": instant(entry.created),
        "expires": instant(entry.expires),
    }
    return {**facts, **{f"label {name}": value for name, value in sorted(entry.labels.items())}}


def _show(facts: dict[str, str]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        if value:
            output.line(f"{visible_line(name):<{width}}  {visible_line(value)}")


def _of(number: int, limit: int) -> str:
    return f"{number:,} of {limit:,}" if limit else f"{number:,}"


def add_to(app: typer.Typer) -> None:
    for each in (ls, stat, summary, usage):
        options = COLORED if each in (ls, summary) else ANSWER
        command(app, examples=_EXAMPLES[each.__name__], options=options)(each)
