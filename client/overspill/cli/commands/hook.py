"""The command hook: answers an agent program's event about a tool call."""

from typing import Annotated

import click

from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument
from overspill.integrations.agent_programs import hook as hooks
from overspill.integrations.agent_programs.programs import PROGRAMS


@command(
    "cat event.json | overspill hook claude-code",
    options=(),
)
def hook(
    _invocation: Invocation,
    program: Annotated[str, argument(metavar="PROGRAM", help=f"One of {', '.join(PROGRAMS)}.")],
) -> None:
    """Answer an agent program's hook.

    The event is on standard input, and the answer goes to standard output. A result that is too long is
    stored; the answer replaces it with a notice, in the form that the program expects. For codex the answer
    is the command to run instead. `overspill init` puts the hook into a program's settings. If anything goes
    wrong, the answer changes nothing, and the exit code is 0.
    """
    raise click.exceptions.Exit(hooks.main(program))
