"""The command rm: removes captures."""

import sys
from typing import TYPE_CHECKING, Annotated

import click

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.options import Refs, WholeSession
from overspill.cli.parameters import flag
from overspill.cli.printable import printable_line
from overspill.errors import ProblemError

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation


@command(
    "overspill rm cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill rm --session run-42 --yes",
)
def rm(
    invocation: "Invocation",
    refs: Refs = (),
    *,
    session: WholeSession = None,
    yes: Annotated[bool, flag("--yes", "-y", help="Do not ask before a session is removed.")] = False,
) -> None:
    """Remove captures, or all of a session."""
    if refs:
        _remove(invocation, refs, session)
    elif session == "":  # a variable that was not set means no session at all
        raise click.BadParameter("it is empty: name a session", param_hint="--session")
    elif session is not None:
        _remove_session(invocation, session, yes=yes)
    else:
        raise click.BadParameter("name the captures, or use --session SESSION", param_hint="REF")


def _remove(invocation: "Invocation", refs: tuple[str, ...], session: str | None) -> None:
    """Remove each. If one cannot be removed, the others still are."""
    code = 0
    with invocation.client() as client:
        for ref in refs:
            try:
                removed = client.delete(ref, session=session)
            except ProblemError as error:
                output.say(lazy.exit_codes.message_of(error))
                code = code or lazy.exit_codes.code_of(error)
            else:
                if invocation.json:
                    invocation.answer(removed)
    if code:
        raise click.exceptions.Exit(code)


def _remove_session(invocation: "Invocation", session: str, *, yes: bool) -> None:
    if not yes and not _is_confirmed(session):
        raise lazy.exit_codes.CommandFailure("nothing was removed", lazy.exit_codes.ExitCode.NO)
    with invocation.client() as client:
        removed = client.delete_session(session)
    if invocation.json:
        invocation.answer(removed)
    else:
        kept = f"; {removed.held:,} stay, for they are on hold" if removed.held else ""
        output.say(f"removed {removed.captures:,} captures, {removed.stored_size:,} stored bytes{kept}")


def _is_confirmed(session: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise lazy.exit_codes.CommandFailure(
            "removing a whole session needs --yes if nobody can be asked", lazy.exit_codes.ExitCode.USAGE
        )
    question = f"Remove every capture of session {printable_line(session)!r}?"
    return click.confirm(question, err=True)
