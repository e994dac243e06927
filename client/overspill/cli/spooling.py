"""The commands spool list, spool flush, spool drop: captures that wait on this machine for the service."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from overspill.cli import output
from overspill.cli.invocation import Invocation, command
from overspill.cli.table import instant, short, tabulate

if TYPE_CHECKING:
    from overspill.spools.flush import Flushed
    from overspill.spools.folder import Spooled
    from overspill.spools.spool import Shelf

_COLUMNS = ("CAPTURE", "SIZE", "LINES", "SINCE", "EXPIRES", "TOOL", "SESSION", "WHY")
_NUMBERS = (1, 2)


def list_(
    at: Invocation,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that wait for other services and keys.")
    ] = False,
) -> None:
    """List the captures that wait on this machine, oldest first, and why."""
    entries = [entry for shelf in _shelves(at, everything=everything) for entry in shelf.entries()]
    if at.json:
        at.answer(entries)
        return
    tabulate(_COLUMNS, [_row(entry) for entry in entries], _NUMBERS, header=True)


def _row(entry: "Spooled") -> tuple[str, ...]:
    return (
        entry.id,
        f"{entry.size:,}",
        f"{entry.lines:,}",
        instant(entry.created),
        instant(entry.expires),
        short(entry.tool) or "-",
        short(entry.session) or "-",
        f"will not be uploaded: {entry.refused}" if entry.refused else entry.reason or "-",
    )


def flush(
    at: Invocation,
    *,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also those that wait for other services and keys, to this one, with its key."
        ),
    ] = False,
) -> None:
    """Upload the captures that wait on this machine, oldest first; those that were refused once, too."""
    from overspill.cli.exits import Code, code_of, message_of  # noqa: PLC0415  (slow to import)

    flushed = _flushed(at, _shelves(at, everything=everything))
    output.say(_told(flushed))
    if flushed.failure is not None:
        output.say(message_of(flushed.failure))
        raise typer.Exit(code_of(flushed.failure))
    if flushed.refused:
        raise typer.Exit(Code.REFUSED)


def _flushed(at: Invocation, shelves: "list[Shelf]") -> "Flushed":
    from overspill.spools import flush as uploads  # noqa: PLC0415  (slow to import)

    total = uploads.Flushed()
    with at.client() as client:
        for shelf in shelves:
            total += uploads.flush(shelf, client, again=True)
    return total


def _told(flushed: "Flushed") -> str:
    from overspill import measure  # noqa: PLC0415  (slow to import)

    counted = measure.counted(flushed.uploaded, "capture")
    parts = [f"uploaded {counted}, {measure.counted(flushed.size, 'byte')}"]
    if flushed.refused:
        parts.append(f"{flushed.refused:,} refused, and kept: overspill spool list")
    if flushed.elsewhere:
        parts.append(f"{flushed.elsewhere:,} are being uploaded by another process")
    if flushed.left:
        parts.append(f"{flushed.left:,} wait still")
    return "; ".join(parts)


def drop(
    at: Invocation,
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="[REF]...", help="Capture ids, or call:TOOL_CALL_ID.")
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="All that wait for this service and key.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before all are dropped.")] = False,
) -> None:
    """Remove captures from this machine without uploading them: their content is gone."""
    from overspill.cli.exits import Code, Failure  # noqa: PLC0415  (slow to import)

    if bool(refs) == everything:
        raise typer.BadParameter("say which captures, or --all", param_hint="REF")
    for shelf in _shelves(at, everything=False):
        found = {ref: shelf.find(ref) for ref in refs or []}
        ids = [entry.id for entry in (shelf.entries() if everything else found.values()) if entry is not None]
        if everything and ids and not yes and not _confirmed(len(ids)):
            raise Failure("nothing was dropped", Code.NO)
        shelf.drop(ids, "it was dropped by hand")
        output.say(f"dropped {len(ids):,} captures")
        missing = [ref for ref, entry in found.items() if entry is None]
        if missing:
            raise Failure(f"not in the spool: {', '.join(missing)}", Code.ABSENT)


def _confirmed(count: int) -> bool:
    from overspill.cli.exits import Code, Failure  # noqa: PLC0415  (slow to import)

    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure("dropping everything needs --yes where nobody can be asked", Code.USAGE)
    return typer.confirm(f"Drop {count:,} captures that nobody else has?", err=True)


def _shelves(at: Invocation, *, everything: bool) -> "list[Shelf]":
    """That of the service and the key first; none that is empty. Raises `Failure` where there is no spool."""
    from overspill.cli.exits import Code, Failure  # noqa: PLC0415  (slow to import)

    own = at.shelf()
    if own is None:
        raise Failure("there is no local spool: OVERSPILL_SPOOL is off", Code.USAGE)
    others = (
        [shelf for shelf in own.spool.shelves() if shelf.folder.path != own.folder.path] if everything else []
    )
    return [shelf for shelf in (own, *others) if shelf.exists()]


def add_to(app: typer.Typer) -> None:
    spool = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(spool, "list")(list_)
    command(spool, options=("url", "key"))(flush)
    command(spool, options=("url", "key"))(drop)
    app.add_typer(spool, name="spool", help="Captures that wait on this machine for the service.")
