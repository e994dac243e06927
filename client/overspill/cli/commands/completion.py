"""The command completion: the script with which a shell completes commands."""

from typing import Annotated

import click
from click.shell_completion import get_completion_class

from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument

_SHELLS = "bash", "zsh", "fish"
_SPLITS, _SPLITS_ONCE = 'string split ","', 'string split --max 1 ","'
"""click's script for fish shows a description only up to its first comma (click 8.5)."""


@command(
    'eval "$(overspill completion bash)"',
    "overspill completion fish > ~/.config/fish/completions/overspill.fish",
    options=(),
)
def completion(
    _invocation: Invocation,
    shell: Annotated[
        str,
        argument(
            metavar="SHELL",
            type=click.Choice(_SHELLS, case_sensitive=False),
            help=f"The shell to complete for: {', '.join(_SHELLS)}.",
        ),
    ],
) -> None:
    """Print the completion script of a shell.

    Run its output when that shell starts, for example in ~/.bashrc.
    """
    completing = get_completion_class(shell)
    assert completing is not None, shell
    root = click.get_current_context().find_root().command
    script = completing(root, {}, "overspill", "_OVERSPILL_COMPLETE").source()
    output.text(script.replace(_SPLITS, _SPLITS_ONCE), raw=True)
