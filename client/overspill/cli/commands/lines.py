"""The command lines: lines of a capture by their numbers."""

from typing import Annotated, Any

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import OutputFile, Ref, SessionFilter, Since
from overspill.cli.parameters import argument
from overspill.cli.parsers import line_range
from overspill.cli.text_printing import print_text


@command(
    "overspill lines cap_k3v7q2m5x4c6z2b7n5aa 120:140",
    "overspill lines call:call_17 --session run-42 5000:",
)
def lines(
    invocation: Invocation,
    ref: Ref,
    numbers: Annotated[
        Any,
        argument(
            metavar="A:B",
            type=line_range,
            help="Lines A to B, counted from 1, both included; also A:, :B and A.",
        ),
    ],
    *,
    since: Since = None,
    into: OutputFile = None,
    session: SessionFilter = None,
) -> None:
    """Print lines by number."""
    start, end = numbers
    with invocation.source(ref, session) as source, output.into(into):
        text = source.lines(ref, start, end, ansi=invocation.raw, since=since, session=session)
        print_text(invocation, source, ref, session, text, since=since)
