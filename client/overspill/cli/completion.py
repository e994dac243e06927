"""The command completion."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from overspill.cli.invocation import Invocation, command

_EXAMPLES = (
    'eval "$(overspill completion bash)"',
    "overspill completion fish > ~/.config/fish/completions/overspill.fish",
)


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    at: Invocation,  # noqa: ARG001  (every command has one)
    shell: Annotated[Shell, typer.Argument(help="The shell to complete for.")],
) -> None:
    """Print what a shell needs to complete commands.

    --install-completion installs it.
    """
    from overspill.cli.app import app  # noqa: PLC0415  (it imports this module)

    os.environ["_OVERSPILL_COMPLETE"] = f"source_{shell}"
    app(prog_name="overspill")


def add_to(app: typer.Typer) -> None:
    command(app, examples=_EXAMPLES, options=())(completion)
