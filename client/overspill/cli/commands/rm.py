"""The command rm: removes captures."""

from typing import Annotated

import click

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.exit_codes import require_yes
from overspill.cli.failures import code_of, message_of
from overspill.cli.invocation import Invocation
from overspill.cli.options import Refs, WholeSession
from overspill.cli.parameters import flag
from overspill.cli.printable import printable_line
from overspill.errors import ProblemError
from overspill.text.quantities import plural


@command(
    "overspill rm cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill rm --session run-42 --yes",
)
def rm(
    invocation: Invocation,
    refs: Refs = (),
    *,
    session: WholeSession = None,
    yes: Annotated[bool, flag("-y", "--yes", help="Do not ask before a session is removed.")] = False,
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


def _remove(invocation: Invocation, refs: tuple[str, ...], session: str | None) -> None:
    """Remove each. If one cannot be removed, the others still are."""
    code = 0
    with invocation.client() as client:
        for ref in refs:
            try:
                removed = client.delete(ref, session=session)
            except ProblemError as error:
                output.say(message_of(error))
                code = code or code_of(error)
            else:
                invocation.answered(removed)
    if code:
        raise click.exceptions.Exit(code)


def _remove_session(invocation: Invocation, session: str, *, yes: bool) -> None:
    if not yes:
        question = f"Remove every capture of session {printable_line(session)!r}?"
        require_yes(question, "removing a whole session", otherwise="nothing was removed")
    with invocation.client() as client:
        removed = client.delete_session(session)
    if not invocation.answered(removed):
        stored = plural(removed.stored_size, "stored byte")
        left_text = f"; left on hold: {removed.held:,}" if removed.held else ""
        output.say(f"removed {plural(removed.captures, 'capture')}, {stored}{left_text}")
