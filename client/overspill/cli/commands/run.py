"""The command run: runs another command, and stores its output if it is long."""

from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import click

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import CallId, Session, Ttl
from overspill.cli.parameters import argument, flag, option
from overspill.execution.child_programs import ProgramNotStarted

if TYPE_CHECKING:
    from overspill.guard.policy import Policy


_PLACEHOLDER = "CAPTURE"
_Words = Annotated[
    tuple[str, ...], argument(nargs=-1, metavar="COMMAND", help="The command to run; put -- before it.")
]
_most = partial(option, metavar="NUM", type=click.IntRange(min=0))
_MaxBytes = Annotated[
    int | None, _most("--max-bytes", help="The longest output to print whole, in bytes (default: by tool).")
]
_MaxLines = Annotated[
    int | None, _most("--max-lines", help="The longest output to print whole, in lines (default: by tool).")
]
_Host = Annotated[
    str | None,
    option(
        metavar="PROGRAM",
        help="The agent program that reads the output, such as codex. Print no more than it shows. "
        "If the command takes long, print its output as it comes.",
    ),
]
_Live = Annotated[
    bool | None,
    option(
        "--live/--no-live",
        help="Show the output as it comes, on the terminal or else on standard error. "
        "--live is the default if standard output is a terminal.",
    ),
]
_Notice = Annotated[bool, flag(help="Print the notice even if the output was already shown.")]


@command(
    "overspill run -- make test",
    "overspill run --session run-42 --max-lines 500 -- pytest -v",
    "overspill run --tool lint -- sh -c 'ruff check . && mypy'",
    options=("url", "key", "raw"),
    context_settings={"allow_interspersed_args": False},
)
def run(  # noqa: PLR0913  (one option for each decision)
    invocation: Invocation,
    words: _Words,
    *,
    tool: Annotated[
        str | None, option(metavar="TOOL", help="The tool's name (default: the command's).")
    ] = None,
    call_id: CallId = None,
    session: Session = None,
    ttl: Ttl = None,
    max_bytes: _MaxBytes = None,
    max_lines: _MaxLines = None,
    host: _Host = None,
    live: _Live = None,
    notice: _Notice = False,
) -> None:
    """Run a command, and store its output if it is long.

    Print a short output as it is, and a notice with a handle instead of a long one. Standard output and
    standard error are kept together, in their order. On a terminal the command has a terminal of its own,
    and its output is shown as it comes; a line at the end says where it is stored. A long output is stored
    while the command runs, and so is any output of a command that runs for two seconds. `overspill terminals`
    lists their handles. The exit code is the command's own: 127 if it is not found, 126 if it cannot be run,
    128 + n if signal n ended it.
    """
    if not words[0]:
        raise click.BadParameter("it is empty: name the command to run", param_hint="COMMAND")
    guarded_output = lazy.guarded_output
    name = tool or PurePath(words[0]).name
    policy = _policy(invocation, host, ttl)
    policy = guarded_output.with_limits(policy, name, max_bytes=max_bytes, max_lines=max_lines)
    call_id = guarded_output.minted() if call_id is None else call_id
    call = guarded_output.CommandCall(tool=name, call_id=call_id, session=session)
    try:
        code = guarded_output.run(
            invocation, words, call, policy, live=live, notice=notice, is_for_agent=host is not None
        )
    except ProgramNotStarted as error:
        output.say(str(error))
        code = error.code
    raise click.exceptions.Exit(code)


def _policy(invocation: Invocation, host: str | None, ttl: int | None) -> "Policy":
    """Return the policy of a command, whose reader is an agent or a person with a shell."""
    policy = invocation.policy()
    policy = replace(policy, ttl=policy.ttl if ttl is None else ttl, reader=_reader(invocation))
    try:
        return policy if host is None else policy.for_host(host)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--host") from error


def _reader(invocation: Invocation) -> str:
    """Return the command that reads more of a capture."""
    return invocation.command("head", "-n", "200", _PLACEHOLDER).replace(_PLACEHOLDER, "{id}")
