"""The command put: a file or standard input becomes a capture."""

from typing import Annotated, Literal

import click

from overspill.cli import lazy
from overspill.cli.declaration import command
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.invocation import Invocation
from overspill.cli.options import CallId, Session, Ttl
from overspill.cli.parameters import argument, flag, option
from overspill.cli.parsers import labels_of

_File = Annotated[str, argument(metavar="FILE", help="The file to store (default, or -: standard input).")]
_Tool = Annotated[str, option(metavar="TOOL", help="The tool whose output this is.")]
_Status = Annotated[str, option(metavar="TEXT", help="How the tool call ended, in a few words: exit 1.")]
_Name = Annotated[
    str, option(metavar="NAME", help="With --live: list the capture as a terminal of this name.")
]
_Labels = Annotated[
    tuple[str, ...], option(metavar="NAME=VALUE", help="A label; may be repeated.", multiple=True)
]
_ContentType = Annotated[str | None, option(metavar="TYPE", help="The media type.")]
_Live = Annotated[bool, flag(help="Store standard input as it comes, and print the handle at once.")]
_Format = Annotated[
    Literal["asciicast"] | None,
    option("--format", help="With --live: the format of standard input.", type=click.Choice(["asciicast"])),
]
_Exact = Annotated[bool, flag(help="Store the exact bytes, without masking secrets.")]


@command(
    "make test 2>&1 | overspill put --tool make",
    "overspill put build.log --session run-42 --label job=nightly --ttl 7d",
    "make test 2>&1 | overspill put --live --name build",
    "overspill put --live --format asciicast < demo.cast",
    "id=$(overspill put report.json --content-type application/json)",
)
def put(  # noqa: PLR0913  (one option for each thing that is kept with a capture)
    invocation: Invocation,
    file: _File = "-",
    *,
    tool: _Tool = "",
    call_id: CallId = None,
    session: Session = None,
    ttl: Ttl = None,
    label: _Labels = (),
    content_type: _ContentType = None,
    status: _Status = "",
    live: _Live = False,
    name: _Name = "",
    form: _Format = None,
    exact: _Exact = False,
) -> None:
    """Store a file or standard input, and print its handle.

    Secrets in text are masked. If the service is down, the content is kept on this machine and uploaded
    later. With --live, others read what has come so far. With --format asciicast, standard input is a
    recording (version 2 or 3); what its terminal showed is stored.
    """
    _check(file, form, name, live=live, is_json=invocation.json)
    try:
        description = lazy.live_ports.Description(
            id="",
            session=invocation.session() if session is None else session,
            tool=tool,
            call_id=call_id or "",
            ttl=ttl,
            status=status,
            content_type=content_type or "",
            labels=labels_of(label),
        )
        if live:
            lazy.live_put.put_live(invocation, description, name, is_recording=bool(form), is_exact=exact)
        else:
            lazy.file_put.put_file(invocation, file, description, is_exact=exact)
    except ValueError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error


def _check(file: str, form: str | None, name: str, *, live: bool, is_json: bool) -> None:
    """Raise `click.BadParameter` for an empty name of a file, and for options that exclude each other."""
    if not file:
        raise click.BadParameter("it is empty: leave it out to store standard input", param_hint="FILE")
    if live and is_json:
        raise click.BadParameter("--live prints the handle alone", param_hint="--json")
    if live and file != "-":
        raise click.BadParameter("it stores standard input: leave FILE out", param_hint="--live")
    if form is not None and not live:
        raise click.BadParameter("it needs --live", param_hint="--format")
    if name and not live:
        raise click.BadParameter("it needs --live", param_hint="--name")
