"""The commands spool list, spool flush, spool drop: captures that wait on this machine for the service."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from overspill import wire
from overspill.cli import lazy, output
from overspill.cli.color import Paint
from overspill.cli.command_types import Commands
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode, require_yes
from overspill.cli.failures import code_of, message_of
from overspill.cli.invocation import Invocation
from overspill.cli.options import COLORED, Refs
from overspill.cli.parameters import flag, option
from overspill.cli.table import Column, Table, cut
from overspill.errors.client_errors import NotSpooled
from overspill.text import quantities

if TYPE_CHECKING:
    from overspill.spools.entries import Spooled
    from overspill.spools.flush import Flushed
    from overspill.spools.partition import Partition

_COLUMNS = (
    Column("CAPTURE"),
    Column("SIZE", is_number=True, rank=1),
    Column("LINES", is_number=True, rank=4),
    Column("AGE", is_number=True, rank=2),
    Column("EXPIRES", is_number=True, rank=3),
    Column("TOOL", min_width=8, rank=5),
    Column("SESSION", min_width=8, rank=6),
    Column("WHY", min_width=12, wraps=True),
)


@command(
    "overspill spool list",
    "overspill spool list --all --json",
    name="list",
    options=COLORED,
    flushes=False,
)
def list_(
    invocation: Invocation,
    *,
    everything: Annotated[
        bool, flag("--all", help="Also list captures that wait for other services and keys.")
    ] = False,
) -> None:
    """List the captures that wait on this machine, and why.

    The oldest come first.
    """
    entries = [
        entry for partition in _partitions(invocation, everything=everything) for entry in partition.entries()
    ]
    if invocation.answered(entries):
        return
    table = Table(_COLUMNS, Paint(invocation.color))
    table.print([_row(table, entry) for entry in entries])
    if not entries:
        output.say("nothing waits on this machine: the service has all that was stored")


def _row(table: Table, entry: "Spooled") -> tuple[str, ...]:
    reason = f"will not be uploaded: {entry.refused}" if entry.refused else entry.reason
    size, lines = table.size(entry.size), table.count(entry.lines)
    times = table.age(entry.created), table.time_left(entry.expires)
    return (entry.id, size, lines, *times, entry.tool, entry.session, reason)


@command("overspill spool flush", options=("url", "key"), flushes=False)
def flush(
    invocation: Invocation,
    *,
    everything: Annotated[
        bool,
        flag(
            "--all",
            help="Also upload captures that wait for other services and keys, to this service with this key.",
        ),
    ] = False,
) -> None:
    """Upload the captures that wait on this machine, oldest first.

    Captures that the service has refused before are tried again.
    """
    flushed = _flush_all(invocation, _partitions(invocation, everything=everything))
    output.say(_summary_of(flushed))
    if flushed.failure is not None:
        output.say(message_of(flushed.failure))
        raise click.exceptions.Exit(code_of(flushed.failure))
    if flushed.refused:
        raise click.exceptions.Exit(ExitCode.REFUSED)


def _flush_all(invocation: Invocation, partitions: "list[Partition]") -> "Flushed":
    total = lazy.spool_flush.Flushed()
    with invocation.client() as client:
        for partition in partitions:
            total += lazy.spool_flush.flush(partition, client, again=True)
    return total


def _summary_of(flushed: "Flushed") -> str:
    counted = quantities.plural(flushed.uploaded, "capture")
    parts = [f"uploaded {counted}, {quantities.plural(flushed.size, 'byte')}"]
    if flushed.refused:
        parts.append(f"{flushed.refused:,} refused, and kept: overspill spool list")
    if flushed.postponed:
        parts.append(f"{flushed.postponed:,} failed and will be tried again later")
    if flushed.elsewhere:
        parts.append(f"{flushed.elsewhere:,} are being uploaded by another process")
    if flushed.left:
        parts.append(f"{flushed.left:,} wait still")
    return "; ".join(parts)


@command(
    "overspill spool drop cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill spool drop --all --session run-42 --yes",
    options=("url", "key"),
    flushes=False,
)
def drop(
    invocation: Invocation,
    refs: Refs = (),
    *,
    session: Annotated[
        str | None,
        option(
            metavar="SESSION",
            help="The session for call: references (default: OVERSPILL_SESSION); --all drops only its own.",
        ),
    ] = None,
    everything: Annotated[
        bool, flag("--all", help="Remove all captures that wait for this service and key.")
    ] = False,
    yes: Annotated[bool, flag("-y", "--yes", help="Do not ask before all captures are dropped.")] = False,
) -> None:
    """Remove captures that wait on this machine, without uploading them.

    The content of these captures is lost.
    """
    if bool(refs) == everything:
        raise click.BadParameter("name the captures, or use --all", param_hint="REF")
    if everything and session == "":  # a variable that was not set means no session at all
        raise click.BadParameter("it is empty: name a session", param_hint="--session")
    partition = _own_partition(invocation)
    if everything:
        _drop_all(partition, session, yes=yes)
    else:
        _drop_some(partition, refs, invocation.session() if session is None else session)


def _drop_all(partition: "Partition", session: str | None, *, yes: bool) -> None:
    session_name = None if session is None else wire.fit(session)
    ids = [entry.id for entry in partition.entries() if session_name is None or entry.session == session_name]
    if ids and not yes:
        question = f"Drop {quantities.plural(len(ids), 'capture')} that nobody else has?"
        require_yes(question, "dropping everything", otherwise="nothing was dropped")
    _drop(partition, ids)


def _drop_some(partition: "Partition", refs: tuple[str, ...], session: str) -> None:
    """Remove captures by reference. Remove none if one of `refs` is ambiguous. Raises `CommandFailure`."""
    found = {ref: _single_match(partition, ref, session) for ref in refs}
    _drop(partition, [entry.id for entry in found.values() if entry is not None])
    missing = [ref for ref, entry in found.items() if entry is None]
    if missing:
        raise CommandFailure(f"not in the spool: {', '.join(missing)}", ExitCode.ABSENT)


def _drop(partition: "Partition", ids: list[str]) -> None:
    ids = list(dict.fromkeys(ids))
    if ids:
        partition.drop(ids, "it was dropped by hand")
    output.say(f"dropped {quantities.plural(len(ids), 'capture')}")


def _single_match(partition: "Partition", ref: str, session: str) -> "Spooled | None":
    """Return the capture that `ref` means; of a call, its newest.

    Raises `CommandFailure` if captures of several sessions have that call id.
    """
    entry = partition.find(ref, session or None)
    if entry is None or entry.id == ref or session:
        return entry
    same = [each for each in partition.entries() if each.call_id == entry.call_id]
    if len({each.session for each in same}) > 1:
        named = ", ".join(f"{each.id} ({cut(each.session, 32) or 'no session'})" for each in same)
        raise CommandFailure(
            f"{ref} is in several sessions: use --session, or one of {named}", ExitCode.USAGE
        )
    return entry


def _partitions(invocation: Invocation, *, everything: bool) -> "list[Partition]":
    """Return the partitions that exist, this service and key first. Raises as `_own_partition` does."""
    own = _own_partition(invocation)
    others = own.spool.partitions() if everything else []
    others = [each for each in others if each.folder.path != own.folder.path]
    return [partition for partition in (own, *others) if partition.exists()]


def _own_partition(invocation: Invocation) -> "Partition":
    """Return the captures that wait for this service and key; there may be none.

    Raises `CommandFailure` if there is no spool, and `NotSpooled` if none can be made: what should wait there
    is lost.
    """
    own = invocation.partition()
    if own is None:
        raise CommandFailure("there is no local spool: OVERSPILL_SPOOL is off", ExitCode.USAGE)
    if not own.spool.exists():
        _check_can_be_made(own.spool.path)
    return own


def _check_can_be_made(path: Path) -> None:
    """Check that a directory could be made there. Raises `NotSpooled` if not."""
    nearest = next(parent for parent in path.parents if os.path.lexists(parent))
    if not nearest.is_dir():
        reason = f"{nearest} is not a directory"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        reason = f"{nearest} cannot be written to"
    else:
        return
    raise NotSpooled(
        f"there can be no local spool {path}, because {reason}: name another with OVERSPILL_SPOOL"
    )


spool: Commands = Commands(
    name="spool",
    commands=[list_, flush, drop],
    help="List, upload or drop the captures that wait on this machine.",
)
