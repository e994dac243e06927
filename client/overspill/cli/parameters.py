"""Declares options and arguments: as annotations of the parameters that take their values."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

import click

from overspill.cli.completing import COMPLETERS

Maker = Callable[[inspect.Parameter], click.Parameter]
"""Makes the option or argument that fills a parameter of a command."""


def option(*flags: str, **settings: Any) -> Maker:
    """Return the annotation of an option. Without `flags` its name is that of the parameter.

    `settings` are those of `click.Option`.
    """

    def make(parameter: inspect.Parameter) -> click.Parameter:
        spelled = flags or (f"--{parameter.name.replace('_', '-')}",)
        default = parameter.default
        is_shown = bool(default) and default is not True
        keywords = {"shell_complete": COMPLETERS.get(settings.get("metavar", "")), **settings}
        return click.Option([*spelled, parameter.name], default=default, show_default=is_shown, **keywords)

    return make


def flag(*flags: str, **settings: Any) -> Maker:
    """Return the annotation of an option that takes no value."""
    return option(*flags, is_flag=True, **settings)


def argument(*, metavar: str, **settings: Any) -> Maker:
    """Return the annotation of an argument, which is optional if its parameter has a default.

    `settings` are those of `click.Argument`.
    """

    def make(parameter: inspect.Parameter) -> click.Parameter:
        is_required = parameter.default is parameter.empty
        values = {"shell_complete": COMPLETERS.get(metavar), **settings}
        if not is_required:
            values = {"default": parameter.default, **values}
        shown = metavar if is_required else f"[{metavar}]"
        shown += "..." if "nargs" in settings else ""
        return click.Argument([parameter.name], required=is_required, metavar=shown, **values)

    return make


def parameters_of(group: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields of a dataclass as parameters, each of which is an option."""
    for field in fields(group):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )


def click_parameters(parameters: Iterable[inspect.Parameter]) -> list[click.Parameter]:
    """Return the options and arguments that the annotations of `parameters` name."""
    return [parameter.annotation.__metadata__[0](parameter) for parameter in parameters]
