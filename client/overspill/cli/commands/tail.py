"""The command tail: the last lines of a capture."""

from typing import Annotated

import click

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import OutputFile, Ref, SessionFilter, Since
from overspill.cli.parameters import flag, option
from overspill.cli.parsers import tail_of
from overspill.cli.text_printing import print_text


@command(
    "overspill tail -20 cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill tail -n 5000 cap_k3v7q2m5x4c6z2b7n5aa -o end.log",
    "overspill tail -n +120 cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill tail -f cap_k3v7q2m5x4c6z2b7n5aa",
)
def tail(
    invocation: Invocation,
    ref: Ref,
    *,
    lines: Annotated[
        str,
        option(
            "-n", "--lines", metavar="NUM", help="The number of lines; also -NUM. +NUM: begin at line NUM."
        ),
    ] = "50",
    since: Since = None,
    into: OutputFile = None,
    session: SessionFilter = None,
    follow: Annotated[
        bool, flag("-f", "--follow", help="Print new output as it comes, until the capture ends.")
    ] = False,
) -> None:
    """Print the last lines.

    With `-f`, go on with the new output of a live capture as it comes. A broken connection is made again.
    """
    start, count = tail_of(lines, minimum=0 if follow else 1)
    if follow:
        if start is not None and start > 1:
            raise click.BadParameter("-f goes with a number of lines, or with +1", param_hint="--lines")
        if since is not None:
            raise click.BadParameter("-f takes a number of lines", param_hint="--since")
        with output.into(into):
            lazy.following.follow(invocation, ref, session, lines=count if start is None else None)
        return
    with invocation.source(ref, session) as source, output.into(into):
        if start is None:
            text = source.tail(ref, count, ansi=invocation.raw, since=since, session=session)
            if text.next and not invocation.json:  # it holds the last of them only: begin with the first
                start = int(text.next["start"])
        if start is not None:
            text = source.lines(ref, start, ansi=invocation.raw, since=since, session=session)
        print_text(invocation, source, ref, session, text, since=since)
