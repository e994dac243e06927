"""What every command has in common: how it is declared, and what it works with."""

import inspect
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from overspill.cli import output
from overspill.cli.color import ColorMode
from overspill.cli.command_types import Command, examples_of
from overspill.cli.exit_codes import CommandFailure, ExitCode, failures_reported
from overspill.cli.options import ANSWER, COMMON
from overspill.cli.printable import printable_json
from overspill.cli.spool_fallback import uploaded_afterwards
from overspill.delivery.storage import shelf_for
from overspill.spools.capture import LocalCapture
from overspill.spools.holder import Holder
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from overspill.spools.folder import Spooled
    from overspill.spools.holder import SyncSource
    from overspill.spools.spool import Shelf


@dataclass(frozen=True)
class Invocation:
    """The options that every command takes, before the command's name or behind it."""

    url: str | None = None
    key: str | None = None
    json: bool = False
    raw: bool = False
    color: ColorMode = ColorMode.AUTO

    def client(self, **limits: Any) -> "SyncClient":
        """A client of the service that the options or the environment name. Raises `CommandFailure`."""
        try:
            return SyncClient(self.url, self.key, **limits)
        except ValueError as error:
            raise CommandFailure(str(error), ExitCode.USAGE) from error

    def session(self) -> str:
        """That of the environment; empty where it names none. Raises `CommandFailure`."""
        with self.client() as client:
            return client.session

    def shelf(self) -> "Shelf | None":
        """Where captures wait that this service did not take yet; None where there is no spool.

        Raises `CommandFailure`.
        """
        try:
            return shelf_for(self.client())
        except ValueError as error:
            raise CommandFailure(str(error), ExitCode.USAGE) from error

    @contextmanager
    def source(self, ref: str, session: str | None) -> Iterator["SyncSource"]:
        """What to read a capture from: the spool, while it waits there, or the service."""
        shelf = self.shelf()
        with self.client() as client:
            holder = Holder(shelf, session=client.session)
            with holder.source(client, ref, session) as source:
                if isinstance(source, LocalCapture):
                    output.say(_not_uploaded(source.spooled))
                yield source

    def answer(self, value: object) -> None:
        """`value` as the JSON of the wire. Raises `OSError`."""
        text = msgspec.json.encode(value).decode()
        output.line(text if self.raw else printable_json(text))

    def command(self, *words: str) -> str:
        """A command line that asks the same service; the key is never shown."""
        url = [] if self.url is None else ["--url", self.url]
        return shlex.join(["overspill", *words[:1], *url, *words[1:]])


def _not_uploaded(spooled: "Spooled") -> str:
    when = f"and will not be uploaded: {spooled.refused}" if spooled.refused else "and is not uploaded yet"
    return f"{spooled.id} is on this machine only {when}"


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    examples: Sequence[str],
    options: Collection[str] = ANSWER,
    flushes: bool = True,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command: a function of an `Invocation` and of its own parameters, as Typer reads them.

    `options` are those of the common options that mean something to it, and `examples` lines as they are
    typed, which its help ends with. One that `flushes` uploads in the end what waits for the service.
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
    """Return those of `options` that were given a value."""
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
