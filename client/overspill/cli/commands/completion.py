"""The command completion: the script with which a shell completes commands."""

import os
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from overspill.cli.command_types import command_of
from overspill.cli.exit_codes import failures_reported


class Shell(StrEnum):
    """The shells for which there is a completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@partial(
    command_of,
    examples=(
        'eval "$(overspill completion bash)"',
        "overspill completion fish > ~/.config/fish/completions/overspill.fish",
    ),
)
def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="The shell to complete for.")],
) -> None:
    """Print the completion script of a shell.

    `overspill --install-completion` installs it.
    """
    os.environ["_OVERSPILL_COMPLETE"] = f"source_{shell}"
    with failures_reported():
        context.find_root().command.main(prog_name="overspill")
