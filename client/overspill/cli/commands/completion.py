"""The command completion: the script with which a shell completes commands."""

from enum import StrEnum
from typing import Annotated

import click
from click.shell_completion import get_completion_class

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument

_SPLITS, _SPLITS_ONCE = 'string split ","', 'string split --max 1 ","'
"""click's script for fish shows a description only up to its first comma (click 8.5)."""


class Shell(StrEnum):
    """The shells for which there is a completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command(
    'eval "$(overspill completion bash)"',
    "overspill completion fish > ~/.config/fish/completions/overspill.fish",
    options=(),
)
def completion(
    _invocation: Invocation,
    shell: Annotated[
        Shell,
        argument(
            metavar="SHELL",
            type=click.Choice(Shell, case_sensitive=False),
            help=f"The shell to complete for: {', '.join(Shell)}.",
        ),
    ],
) -> None:
    """Print the completion script of a shell.

    Run its output where that shell starts, such as in ~/.bashrc.
    """
    completing = get_completion_class(shell)
    assert completing is not None, shell
    root = click.get_current_context().find_root().command
    script = completing(root, {}, "overspill", "_OVERSPILL_COMPLETE").source()
    output.text(script.replace(_SPLITS, _SPLITS_ONCE), raw=True)
