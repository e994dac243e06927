"""The command mcp-proxy: runs an MCP server, and guards what its tools return."""

import os
from typing import Annotated

import click

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.parameters import argument, flag, option
from overspill.execution.child_programs import ProgramNotStarted


def _header(text: str) -> tuple[str, str]:
    name, _, variable = text.partition("=")
    if variable not in os.environ:
        raise click.BadParameter(f"{text!r} is not NAME=VARIABLE with a variable that the environment has")
    return name, os.environ[variable]


_Words = Annotated[
    tuple[str, ...], argument(nargs=-1, metavar="COMMAND", help="The server; put -- before it.")
]
_ServerUrl = Annotated[
    str | None,
    option("--url", metavar="URL", help="The URL of a server that already runs (streamable HTTP)."),
]
_Headers = Annotated[
    tuple[str, ...],
    option(
        metavar="NAME=VARIABLE",
        help="Send this header to the URL, with the value of an environment variable.",
        multiple=True,
    ),
]
_Whole = Annotated[
    tuple[str, ...],
    option(metavar="TOOL", help="Never cut this tool's results. For tools that code calls.", multiple=True),
]
_DropSchemas = Annotated[
    bool,
    flag(help="Remove output schemas from the list of tools. Notices then need not match them."),
]


@command(
    "overspill mcp-proxy -- npx -y @modelcontextprotocol/server-filesystem /srv/data",
    "overspill mcp-proxy --whole read_config -- uvx mcp-server-git",
    "overspill mcp-proxy --url https://example.com/mcp --header Authorization=EXAMPLE_AUTH",
    options=(),
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
def mcp_proxy(
    invocation: Invocation,
    words: _Words = (),
    *,
    server_url: _ServerUrl = None,
    header: _Headers = (),
    whole: _Whole = (),
    drop_schemas: _DropSchemas = False,
) -> None:
    """Run an MCP server, and guard what its tools return.

    Results that are too long are stored whole. The client gets a notice with a handle, and two more tools to
    read on: inspect_output and list_captures. Everything else passes unchanged. OVERSPILL_URL, OVERSPILL_KEY
    and OVERSPILL_POLICY (a policy file) name the service, its key and the limits; no limit is higher than
    what the client's program shows whole. The exit code is the server's.
    """
    if bool(words) == bool(server_url):
        raise click.BadParameter("give either the command of a server, after --, or --url")
    if server_url is not None and not server_url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"{server_url!r} is not a URL such as https://example.com/mcp", param_hint="--url"
        )
    try:
        code = lazy.mcp_proxy.run(
            invocation.client(),
            invocation.policy(),
            server_url or words,
            headers=dict(map(_header, header)),
            whole=whole,
            drops_schemas=drop_schemas,
        )
    except ProgramNotStarted as error:
        output.say(str(error))
        code = error.code
    except lazy.mcp_streams.NoStreams as error:
        raise click.BadParameter(str(error)) from error
    raise click.exceptions.Exit(code)
