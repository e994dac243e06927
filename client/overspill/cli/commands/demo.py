"""The command demo: everything on this machine, with a service of its own."""

from pathlib import Path
from typing import Annotated

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import flag, option


@command(
    "overspill demo",
    "overspill demo --keep --data ./demo-data",
    "overspill demo --fleet --keep",
    options=(),
)
def demo(
    invocation: Invocation,  # noqa: ARG001  (it brings a service of its own)
    *,
    keep: Annotated[bool, flag(help="Leave the service running until Ctrl-C.")] = False,
    fleet: Annotated[
        bool, flag(help="Simulate twenty agents of three tenants for a minute instead.")
    ] = False,
    data: Annotated[
        Path | None, option(metavar="DIR", help="Keep the service's data in this folder.", type=Path)
    ] = None,
) -> None:
    """Show what Overspill does, on this machine.

    Runs three real tools, shows their notices, and reads their outputs by handle.
    """
    lazy.story.run(data, keep=keep, fleet=fleet)
