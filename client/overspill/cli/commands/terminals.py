"""The command terminals: the commands and terminals whose output is stored while they run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from overspill import wire
from overspill.cli import output
from overspill.cli.color import Paint
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Limit
from overspill.cli.parameters import argument, flag, option
from overspill.cli.table import Column, Table
from overspill.reading.shell_marks import Section, ShellMarks

if TYPE_CHECKING:
    from overspill.transfer.sync import SyncClient

_MAX_LOOKED_AT = 1_000
_SECTIONS = (
    Column("LINES", is_number=True),
    Column("EXIT", is_number=True, usual="0"),
    Column("COMMAND", min_width=8),
)
_COLUMNS = (
    Column("CAPTURE"),
    Column("NAME", min_width=6),
    Column("STATE", rank=1, usual="live"),
    Column("STARTED", is_number=True, rank=5),
    Column("ACTIVE", is_number=True, rank=2),
    Column("SIZE", is_number=True, rank=4),
    Column("SESSION", min_width=8, rank=6),
    Column("COMMAND", min_width=8, rank=3),
)


@command(
    "overspill terminals",
    "overspill terminals --all --session run-42",
    "overspill terminals cap_k3v7q2m5x4c6z2b7n5aa",
    options=COLORED,
)
def terminals(
    invocation: Invocation,
    ref: Annotated[str | None, argument(metavar="REF", help="A terminal: list its commands.")] = None,
    *,
    session: Annotated[str | None, option(metavar="SESSION", help="List only those of this session.")] = None,
    everything: Annotated[bool, flag("--all", help="Also list those that have ended.")] = False,
    limit: Limit = 50,
) -> None:
    """List the terminals and commands that run now.

    Lists what `overspill run`, `overspill shell` and `put --live --name` have started, newest first. On a
    terminal, the times say how long ago each one was started and last wrote something. A pipe gets exact
    times. With REF, list the commands that a shell ran in that terminal, with the lines of their outputs and
    their exit codes.
    """
    if ref is not None:
        _print_sections(invocation, ref, session)
        return
    with invocation.client() as client:
        found = list(_iterate_terminals(client, session, limit, is_ended_too=everything))
    if invocation.answered(wire.Listing(captures=found)):
        return
    table = Table(_COLUMNS, Paint(invocation.color))
    table.print([_row(table, entry) for entry in found])
    if not found:
        output.say("no terminal is live; `overspill run -- COMMAND` and `overspill shell` start one")


def _iterate_terminals(
    client: "SyncClient", session: str | None, limit: int, *, is_ended_too: bool
) -> Iterator[wire.Entry]:
    state = None if is_ended_too else wire.State.LIVE
    with client.iterate(session=session, state=state) as entries:
        for looked_at, entry in enumerate(entries):
            if wire.TERMINAL_LABEL in entry.labels:
                yield entry
                limit -= 1
            if not limit or looked_at == _MAX_LOOKED_AT:
                return


def _print_sections(invocation: Invocation, ref: str, session: str | None) -> None:
    marks = ShellMarks()
    with invocation.client() as client, client.stream(ref, session=session) as pieces:
        for piece in pieces:
            marks.feed(piece)
    if invocation.answered(marks.sections):
        return
    table = Table(_SECTIONS, Paint(invocation.color))
    table.print([_section_row(each) for each in marks.sections])
    if not marks.sections:
        output.say(f"no shell has marked commands in {ref}; `overspill shell` with bash, zsh or fish does")


def _section_row(section: Section) -> tuple[str, ...]:
    end = "" if section.end is None else str(section.end)
    lines = "" if section.end == section.start - 1 else f"{section.start}:{end}"  # it has printed nothing
    code = "" if section.exit_code is None else str(section.exit_code)
    return lines, code, section.command


def _row(table: Table, entry: wire.Entry) -> tuple[str, ...]:
    labels = entry.labels
    return (
        entry.id,
        labels[wire.TERMINAL_LABEL],
        entry.state,
        table.age(entry.created),
        table.age(entry.last_append or entry.created),
        table.size(entry.size),
        entry.session,
        labels.get(wire.COMMAND_LABEL, ""),
    )
