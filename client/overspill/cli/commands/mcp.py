"""The command mcp: an MCP server with the tools that read captures."""

from importlib.util import find_spec
from typing import Annotated

import click

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import flag, option
from overspill.cli.parsers import address, token
from overspill.mcp.callers import Callers

_MISSING = (
    "this command needs the extra overspill[mcp]; install it from a checkout: pip install './client[mcp]'"
)


@command(
    "overspill mcp",
    "claude mcp add overspill -- overspill mcp",
    "overspill mcp --http 127.0.0.1:8751      # then http://127.0.0.1:8751/mcp",
    "overspill mcp --http 127.0.0.1:8751 --token-variable MCP_TOKEN",
    options=(),
)
def mcp(
    invocation: Invocation,
    *,
    http: Annotated[
        str | None, option(metavar="HOST:PORT", help="Serve HTTP on this machine instead of stdio.")
    ] = None,
    token_variable: Annotated[
        str | None,
        option(
            metavar="VARIABLE",
            help="The environment variable with a token; HTTP clients then send Authorization: Bearer.",
        ),
    ] = None,
    anyone: Annotated[bool, flag(help="Let every user of this machine read over HTTP.")] = False,
) -> None:
    """Serve the tools that read captures to an MCP client.

    The tools are inspect_output, list_captures and get_terminal_output; captures are resources too
    (overspill://cap_...). OVERSPILL_URL, OVERSPILL_KEY and OVERSPILL_SESSION name the service, the key and
    the session. HTTP is served on this machine only: to programs of this user, or to those with the token.
    """
    listen = None if http is None else address(http)
    callers = Callers(token(token_variable), anyone=anyone)
    if find_spec("mcp") is None:
        raise CommandFailure(_MISSING, ExitCode.USAGE)
    try:
        lazy.mcp_server.run(invocation.client(), listen, callers, announce=click.echo)
    except lazy.mcp_server.NotThisMachine as error:
        raise click.BadParameter(str(error)) from error
