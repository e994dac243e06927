"""The command gateway: guards the results that an MCP gateway passes."""

from typing import Annotated

import click

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import flag, option
from overspill.cli.parsers import address, token
from overspill.mcp.callers import Callers


@command(
    "overspill gateway",
    "overspill gateway --listen 0.0.0.0:8752 --token-variable GATEWAY_TOKEN",
    options=(),
)
def gateway(
    invocation: Invocation,
    *,
    listen: Annotated[
        str, option(metavar="HOST:PORT", help="The address on which to listen for the gateway.")
    ] = "127.0.0.1:8752",
    token_variable: Annotated[
        str | None,
        option(
            metavar="VARIABLE",
            help="The environment variable with a token. The gateway's URL then needs ?token=...",
        ),
    ] = None,
    anyone: Annotated[bool, flag(help="Take results from every user of this machine.")] = False,
) -> None:
    """Guard the results of all tools behind Docker's MCP gateway.

    Prints the option with which to start the gateway. Results that are too long are stored whole,
    and agents get a notice with a handle. If anything goes wrong, a result passes unchanged. OVERSPILL_URL,
    OVERSPILL_KEY and OVERSPILL_POLICY (a policy file) name the service, its key and the limits. Without a
    token only programs of this user may send results.
    """
    callers = Callers(token(token_variable), anyone=anyone)
    try:
        lazy.gateway.run(
            invocation.client(), invocation.policy(), address(listen), callers, announce=click.echo
        )
    except lazy.gateway.TokenNeeded as error:
        raise click.BadParameter(f"{error}: name a token with --token-variable") from error
