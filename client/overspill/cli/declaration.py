"""How a command is declared: the common options, its examples, and what happens when it ends."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import typer

from overspill.cli.command_types import Command, examples_of
from overspill.cli.exit_codes import failures_reported
from overspill.cli.invocation import Invocation
from overspill.cli.options import ANSWER, COMMON
from overspill.cli.spool_fallback import uploaded_afterwards


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    examples: Sequence[str],
    options: Collection[str] = ANSWER,
    flushes: bool = True,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that declares a command.

    The function takes an `Invocation` and its own parameters, annotated for Typer. `options` names the common
    options that the command takes. Its help ends with `examples`, lines as they are typed. If it `flushes`,
    the command uploads what waits for the service when it ends.
    """

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        def run(typer_context: typer.Context, **given: Any) -> None:
            uploads = uploaded_afterwards if flushes and options else nullcontext
            common = {option: given.pop(option) for option in options}
            invocation = Invocation(**{**(typer_context.obj or {}), **_said(common)})
            with failures_reported(), uploads(invocation):
                function(invocation, **given)

        _disguise(run, function, options)
        app.command(name or function.__name__, cls=Command, epilog=examples_of(examples), **settings)(run)
        return function

    return declare


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given a value."""
    return {name: value for name, value in options.items() if value}


def _disguise(run: Callable[..., None], function: Callable[..., None], options: Collection[str]) -> None:
    """Give `run` the parameters and the help of `function`, and the common options."""
    context = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    common = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, (annotation, default) in COMMON.items()
        if option in options
    ]
    parameters = [context, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *common]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect.signature
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = function.__doc__
    run.__name__ = function.__name__
