"""The command line: all commands, their common options, and the help of the whole."""

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

import overspill
from overspill.cli.address_space import spare_address_space
from overspill.cli.color import ColorMode
from overspill.cli.command_types import LazyCommand, examples_of
from overspill.cli.options import Color, Json, Key, Raw, Url

HELP = """Store oversized tool outputs, and read exactly the lines that are needed.

Data goes to standard output, everything else to standard error. REF is a capture id (cap_...) or
call:TOOL_CALL_ID.

Exit codes: 0 done; 1 grep found nothing, or rm was not confirmed; 2 wrong arguments; 3 not found, expired
or deleted; 4 refused (key, limit, conflict); 5 the service is unreachable or unavailable; 6 failed (a file,
damaged bytes, the service itself); 130 interrupted; 141 standard output was closed. `run` exits as its
command did.
"""

EXAMPLES = (
    "overspill run -- make test            # any command; a long output is stored",
    "overspill ls                          # what is stored",
    "overspill grep cap_... 'error|failed' # cap_...: a handle, from the notice or from ls",
    "overspill tail -20 cap_...",
    "overspill COMMAND --help              # each has examples",
)

COMMANDS: Final = {
    "run": "Run a command, and store its output if it is long.",
    "ls": "List captures, newest first.",
    "stat": "Show the facts of a capture: state, size, tool, session, labels, expiry, readers.",
    "summary": "Summarise a capture.",
    "top": "Show which tools spill, and how much that keeps out of conversations.",
    "usage": "Show what the tenant has stored, and its limits.",
    "advise": "Suggest a threshold and a preview for each tool.",
    "holdout": "Compare the two arms of an experiment: sessions held out, and usual ones.",
    "open": "Open the web page in a browser, signed in with your key.",
    "grep": "Print the lines that match.",
    "cat": "Print all of a capture, or a range of bytes.",
    "head": "Print the first lines.",
    "tail": "Print the last lines.",
    "lines": "Print lines by number.",
    "shell": "Start your shell on a terminal whose output is stored while you work.",
    "terminals": "List the terminals and commands whose output is stored while they run, newest first.",
    "put": "Store a file or standard input, and print its handle.",
    "rm": "Remove captures, or all of a session.",
    "hold": "Keep captures, or all of a session, from expiring and from being deleted.",
    "ttl": "Change how long a capture lives, and print when it expires.",
    "hook": "Answer an agent program's hook.",
    "init": "Guard the tools of agent programs on this machine.",
    "mcp": "Serve the tools that read captures to an MCP client.",
    "mcp-proxy": "Run an MCP server, and guard what its tools return.",
    "gateway": "Guard the results of all tools behind Docker's MCP gateway.",
    "demo": "Show what Overspill does, on this machine.",
    "completion": "Print the completion script of a shell.",
    "spool": "List, upload or drop the captures that wait on this machine.",
}
"""The first sentence of each command's help; the command is in the module of its name in `commands`."""


class Commands(TyperGroup):
    """All commands. Each is imported when it is used, so `overspill --help` waits for none."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(LazyCommand(name, summary))


app: Final = typer.Typer(
    name="overspill",
    cls=Commands,
    help=HELP,
    epilog=examples_of(EXAMPLES),
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001  (Typer calls it)
    if value:
        typer.echo(f"overspill {overspill.__version__}")
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
    """Keep the options before the command's name for the command."""
    context.obj = {"url": url, "key": key, "json": json, "raw": raw, "color": color or ColorMode.AUTO}


def main() -> int:
    """Run the command line, which ends the process."""
    spare_address_space()
    app(prog_name="overspill")
    return 0
