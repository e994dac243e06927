"""The command line: all commands, their common options, and the help of the whole."""

import sys
from contextlib import suppress
from typing import Any, Final

import click

from overspill.cli.address_space import spare_address_space
from overspill.cli.command_types import Commands, LazyCommand, examples_of
from overspill.cli.exit_codes import ExitCode, reported
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import click_parameters, parameters_of

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
    "stat": "Show the details of a capture.",
    "summary": "Summarise a capture.",
    "top": "Show which tools spill, and how much.",
    "usage": "Show what the tenant has stored, and its limits.",
    "advise": "Suggest a threshold and a preview for each tool.",
    "holdout": "Compare the two arms of an experiment.",
    "open": "Open the web page in a browser, signed in with your key.",
    "grep": "Print the lines that match.",
    "cat": "Print all of a capture, or a range of bytes.",
    "head": "Print the first lines.",
    "tail": "Print the last lines.",
    "lines": "Print lines by number.",
    "shell": "Start your shell, and store what its terminal shows.",
    "terminals": "List the terminals and commands that run now.",
    "put": "Store a file or standard input, and print its handle.",
    "rm": "Remove captures, or all of a session.",
    "hold": "Keep captures from expiring and from being deleted.",
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


@click.group(
    "overspill",
    cls=Commands,
    commands=[LazyCommand(name, summary) for name, summary in COMMANDS.items()],
    help=HELP,
    epilog=examples_of(EXAMPLES),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(None, "-V", "--version", package_name="overspill", message="overspill %(version)s")
@click.pass_context
def app(context: click.Context, /, **arguments: Any) -> None:
    """Keep the options before the command's name for the command."""
    context.obj = arguments


app.params += click_parameters(parameters_of(Invocation))


def main() -> int:
    """Run the command line, which ends the process."""
    spare_address_space()
    sys.exit(_run())


def _run() -> int:
    try:
        return app.main(prog_name="overspill", standalone_mode=False) or 0
    except click.ClickException as error:
        with suppress(OSError):  # nobody can read what was wrong, but the exit code says that something was
            error.show()
        return error.exit_code
    except click.Abort:  # an interrupt before a command has begun
        click.echo("overspill: interrupted", err=True)
        return ExitCode.INTERRUPTED
    except OSError as error:  # of a help page: commands report their own
        return reported(OSError(error.errno, error.strerror, "standard output"))
