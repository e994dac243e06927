"""The command head: the first lines of a capture."""

from typing import Annotated

import click

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import OutputFile, Ref, SessionFilter, Since
from overspill.cli.parameters import option
from overspill.cli.text_printing import print_text


@command(
    "overspill head cap_k3v7q2m5x4c6z2b7n5aa",
    "overspill head -20 call:call_17",
)
def head(
    invocation: Invocation,
    ref: Ref,
    *,
    lines: Annotated[
        int,
        option(
            "-n",
            "--lines",
            metavar="NUM",
            help="The number of lines; also -NUM.",
            type=click.IntRange(min=1, max=2**53),
        ),
    ] = 50,
    since: Since = None,
    into: OutputFile = None,
    session: SessionFilter = None,
) -> None:
    """Print the first lines."""
    with invocation.source(ref, session) as source, output.into(into):
        text = source.head(ref, lines, ansi=invocation.raw, since=since, session=session)
        print_text(invocation, source, ref, session, text, since=since)
