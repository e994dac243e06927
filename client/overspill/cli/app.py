"""The commands put together."""

from typing import Annotated

import typer

from overspill.cli import completion, listing, reading, running, searching, showcase, spooling, storing
from overspill.cli.color import When
from overspill.cli.declaring import examples_of
from overspill.cli.invocation import Color, Invocation, Json, Key, Raw, Url
from overspill.cli.memory import spare_address_space

HELP = """Store oversized tool outputs, and read exactly the lines that are needed.

Data goes to standard output, everything else to standard error. REF is a capture id (cap_...) or
call:TOOL_CALL_ID.

Exit codes: 0 done; 1 no (grep found nothing, rm was not confirmed); 2 wrong arguments; 3 not found, expired
or deleted; 4 refused (key, limit, conflict); 5 the service is unreachable or unavailable; 6 failed (a file,
damaged bytes, the service itself); 130 interrupted; 141 nobody reads standard output. `run` exits as its
command did.
"""

EXAMPLES = (
    "overspill run -- make test            # any command; a long output is stored",
    "overspill ls                          # what is stored",
    "overspill grep cap_... 'error|failed' # cap_...: a handle, from the notice or from ls",
    "overspill tail -20 cap_...",
    "overspill COMMAND --help              # each has examples",
)

app = typer.Typer(
    name="overspill",
    help=HELP,
    epilog=examples_of(EXAMPLES),
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001  (Typer calls it)
    if value:
        from importlib.metadata import version  # noqa: PLC0415  (slow to import)

        typer.echo(f"overspill {version('overspill')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("-V", "--version", callback=_version, is_eager=True, help="Show the version and exit.")
]


@app.callback()
def common(
    context: typer.Context,
    *,
    version: Version = False,  # noqa: ARG001  (its callback does it all)
    url: Url = None,
    key: Key = None,
    json: Json = False,
    raw: Raw = False,
    color: Color = None,
) -> None:
    context.obj = Invocation(url, key, json, raw, color or When.AUTO)


for module in (running, listing, searching, reading, storing, spooling, showcase, completion):
    module.add_to(app)


def main() -> int:
    """Run the command line, which ends the process."""
    spare_address_space()
    app(prog_name="overspill")
    return 0
