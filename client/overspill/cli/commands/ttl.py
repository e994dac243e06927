"""The command ttl: changes how long a capture lives."""

from typing import Annotated

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import Ref, SessionFilter
from overspill.cli.parameters import argument
from overspill.cli.parsers import seconds
from overspill.cli.table import instant


@command(
    "overspill ttl cap_k3v7q2m5x4c6z2b7n5aa 7d",
)
def ttl(
    invocation: Invocation,
    ref: Ref,
    duration: Annotated[
        int,
        argument(
            metavar="DURATION", type=seconds, help="The new lifetime from now on: seconds, 30m, 2h, 7d."
        ),
    ],
    *,
    session: SessionFilter = None,
) -> None:
    """Change how long a capture lives, and print when it expires."""
    with invocation.client() as client:
        entry = client.set_ttl(ref, duration, session=session)
    if not invocation.answered(entry):
        output.line(instant(entry.expires))
