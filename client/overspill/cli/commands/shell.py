"""The command shell: the person's shell, as a terminal that others can read."""

import os
from typing import Annotated

import click

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.options import Session, Ttl
from overspill.cli.parameters import option
from overspill.execution.child_programs import ProgramNotStarted


@command(
    "overspill shell",
    "overspill shell --name deploy --session run-42",
    "overspill shell --shell 'bash --norc'",
    options=("url", "key"),
)
def shell(
    invocation: Invocation,
    *,
    name: Annotated[str, option(metavar="NAME", help="The terminal's name.")] = "shell",
    program: Annotated[
        str | None, option("--shell", metavar="COMMAND", help="The shell to start (default: SHELL).")
    ] = None,
    session: Session = None,
    ttl: Ttl = None,
) -> None:
    """Start your shell, and store what its terminal shows.

    `overspill terminals` lists the terminal. `overspill tail -f` and agents read it while you work. Secrets
    are masked before anything is sent. With bash, zsh and fish `overspill terminals REF` lists the commands,
    with their lines and exit codes. Programs in the terminal find its handle in OVERSPILL_TERMINAL. The exit
    code is the shell's.
    """
    started = program or os.environ.get("SHELL") or "/bin/sh"
    try:
        code = lazy.shell_session.run_shell(invocation, started, name=name, session=session, ttl=ttl)
    except ProgramNotStarted as error:
        raise CommandFailure(str(error), ExitCode.FAILED) from error
    raise click.exceptions.Exit(code)
