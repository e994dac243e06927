"""Types of commands: with `-20` for a number of lines, with examples in the help, and imported when used."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final

import click

from overspill.cli.exit_codes import ExitCode

_NUMBERED: Final = {"head": "-n", "tail": "-n", "grep": "-C"}
"""The option that a bare number stands for, as in the Unix tools of these names."""


class Command(click.Command):
    """A command that may take `-20` for a number of lines."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `args`, in which a bare `-20` means the option for a number of lines."""
        option = _NUMBERED.get(self.name or "")
        return super().parse_args(ctx, args if option is None else list(self._spelled_out(args, option)))

    def _spelled_out(self, args: Sequence[str], option: str) -> Iterator[str]:
        """Yield `args` with `-20` as `-n 20`. The value of an option stays, and so does what follows `--`."""
        valued = {name for each in self.params for name in each.opts if not getattr(each, "is_flag", True)}
        before, is_over = "", False
        for word in args:
            is_over = is_over or word == "--"
            if not is_over and before not in valued and word[:1] == "-" and word[1:].isdecimal():
                yield from (option, word[1:])
            else:
                yield word
            before = word


class Commands(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click gives it)
        """Return the names of all commands."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. One that is interrupted before it begins ends as if it had begun."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("overspill: interrupted", err=True)
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


class LazyCommand(click.Command):
    """A command whose module is imported when the command is used, so that `overspill --help` is quick.

    The module `overspill.cli.commands.NAME` has it under the same name; a hyphen is an underscore there.
    `summary` is the first sentence of the command's help.
    """

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary)

    def load(self) -> click.Command:
        """Import the module. Return the command itself, or the group of that name."""
        name = str(self.name).replace("-", "_")
        found: click.Command = getattr(import_module(f"overspill.cli.commands.{name}"), name)
        found.help = found.help or self.help  # under `python -OO` no function has a docstring
        return found

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """Hand over to the command itself, which then parses, completes, shows its help and runs."""
        return self.load().make_context(*arguments, **settings)


def examples_of(lines: Sequence[str]) -> str:
    """Return the end of a help page. Each example is a line as it is typed."""
    return "\n".join(("\b\nExamples:", *(f"  {line}" for line in lines))) if lines else ""
