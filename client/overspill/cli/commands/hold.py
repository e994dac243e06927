"""The command hold: keeps captures from being removed, by anybody and by time."""

from typing import Annotated

import click

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import Refs, WholeSession
from overspill.cli.parameters import flag
from overspill.text.quantities import plural


@command(
    "overspill hold cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill hold --session run-42",
    "overspill hold --session run-42 --release",
)
def hold(
    invocation: Invocation,
    refs: Refs = (),
    *,
    session: WholeSession = None,
    release: Annotated[
        bool, flag(help="End the hold. The captures then expire after the default TTL.")
    ] = False,
) -> None:
    """Keep captures from expiring and from being deleted.

    Name the captures. Without REF, --session means all captures that the session has now.
    """
    if refs:
        _hold(invocation, refs, session, release=release)
    elif session:
        _hold_session(invocation, session, release=release)
    else:
        raise click.BadParameter("name the captures, or use --session SESSION", param_hint="REF")


def _hold(invocation: Invocation, refs: tuple[str, ...], session: str | None, *, release: bool) -> None:
    with invocation.client() as client:
        for ref in refs:
            entry = (client.release if release else client.hold)(ref, session=session)
            invocation.answered(entry)


def _hold_session(invocation: Invocation, session: str, *, release: bool) -> None:
    with invocation.client() as client:
        receipt = (client.release_session if release else client.hold_session)(session)
    if not invocation.answered(receipt):
        output.say(f"{'released' if release else 'on hold:'} {plural(receipt.captures, 'capture')}")
