"""The declaration of a command: the common options, its examples, and what happens when it ends."""

import inspect
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

import click

from overspill.cli import lazy
from overspill.cli.command_types import Command, examples_of
from overspill.cli.invocation import Invocation
from overspill.cli.options import ANSWER
from overspill.cli.parameters import click_parameters, parameters_of


def command(
    *examples: str, options: Collection[str] = ANSWER, flushes: bool = True, **settings: Any
) -> Callable[[Callable[..., None]], Command]:
    """Return a decorator that makes a function a command of its name.

    The function takes an `Invocation` and its own parameters, each annotated with an option or argument; for
    a parameter that is a dataclass, its fields are the command's options. `options` names the common options
    that the command takes. Its help ends with `examples`, lines as they are typed. If it `flushes`, the
    command uploads what waits for the service when it ends. `settings` are those of `click.Command`.
    """

    def declare(function: Callable[..., None]) -> Command:
        _invocation, *parameters = inspect.signature(function).parameters.values()
        groups: dict[str, Any] = {
            each.name: each.annotation for each in parameters if is_dataclass(each.annotation)
        }
        own = [option for each in parameters for option in _options(each)]
        common = [option for option in parameters_of(Invocation) if option.name in options]

        @click.pass_context
        def run(context: click.Context, /, **arguments: Any) -> None:
            uploads = lazy.spool_upload.uploaded_afterwards if flushes and options else nullcontext
            typed = {option: value for option in options if (value := arguments.pop(option))}
            invocation = Invocation(**{**(context.obj or {}), **typed})
            for name, group in groups.items():
                arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
            with lazy.failures.failures_reported(), uploads(invocation):
                function(invocation, **arguments)

        named = {"name": function.__name__.replace("_", "-"), "help": function.__doc__, **settings}
        named |= {"epilog": examples_of(examples), "params": click_parameters([*own, *common])}
        return Command(callback=run, **named)

    return declare


def _options(parameter: inspect.Parameter) -> Iterable[inspect.Parameter]:
    """Return what is asked for a parameter: itself, or the fields of its dataclass."""
    return parameters_of(parameter.annotation) if is_dataclass(parameter.annotation) else [parameter]
