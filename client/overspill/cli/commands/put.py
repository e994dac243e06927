"""The command put: a file or standard input becomes a capture."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from overspill.cli import lazy, output
from overspill.cli.declaration import command
from overspill.cli.options import Session, Ttl
from overspill.cli.parsers import labels_of
from overspill.cli.progress import file_with_progress

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.cli.spool_fallback import CaptureMetadata
    from overspill.wire import Entry

_EXAMPLES = (
    "make test 2>&1 | overspill put --tool make",
    "overspill put build.log --session run-42 --label job=nightly --ttl 7d",
    "make test 2>&1 | overspill put --live --name build",
    "id=$(overspill put report.json --content-type application/json)",
)
_ROUNDING_SECONDS = 2
_TOLERANCE_SECONDS, _TOLERANCE_SHARE = 90, 0.03
"""A lifetime that differs by no more than this is what was asked for."""


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """Open a binary file that can be read twice. The content of a pipe is copied to a temporary file."""
    with _source(file) as opened, ExitStack() as stack:
        if opened.seekable():
            yield opened
            return
        copy = stack.enter_context(TemporaryFile(prefix="overspill-put-"))
        copyfileobj(opened, copy)
        copy.seek(0)
        yield copy


def put(  # noqa: PLR0913  (one option for each thing that is kept with a capture)
    invocation: "Invocation",
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to store; - is standard input.")] = "-",
    *,
    tool: Annotated[str, typer.Option(metavar="TOOL", help="The tool whose output this is.")] = "",
    call_id: Annotated[str, typer.Option("--call-id", metavar="ID", help="The tool-call id.")] = "",
    session: Session = None,
    ttl: Ttl = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label; may be repeated.")
    ] = None,
    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="The media type.")
    ] = None,
    status: Annotated[str, typer.Option(metavar="TEXT", help="How the tool ended, in your own words.")] = "",
    live: Annotated[
        bool, typer.Option("--live", help="Store standard input as it comes; print the handle at once.")
    ] = False,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="With --live: list it as the terminal of this name.")
    ] = "",
) -> None:
    """Store a file or standard input, and print its handle.

    If the service is down, keep it on this machine and upload it later, under the same handle. With --live
    others read what came so far, with secrets masked as a guard masks them.
    """
    if live and file != "-":
        raise typer.BadParameter("it stores standard input: leave FILE out", param_hint="--live")
    try:
        metadata = lazy.spool_fallback.CaptureMetadata(
            session=invocation.session() if session is None else session,
            tool=tool,
            call_id=call_id,
            ttl=ttl,
            status=status,
            content_type=content_type,
            labels=labels_of(label or []),
        )
        if live:
            lazy.live_put.put_live(invocation, metadata, name)
            return
        with _opened(file) as source:
            entry = _stored(invocation, source, metadata)
    except ValueError as error:
        raise lazy.exit_codes.CommandFailure(str(error), lazy.exit_codes.ExitCode.USAGE) from error
    if invocation.json:
        invocation.answer(entry)
    else:
        output.line(entry.id)
    _warn_of_ignored_options(entry, asdict(metadata))


def _warn_of_ignored_options(entry: "Entry", given: dict[str, Any]) -> None:
    ignored = _ignored_options(entry, given)
    if ignored:
        changing = "changes" if len(ignored) == 1 else "change"
        output.say(
            f"{entry.id} was stored before, and stays as it was: {_joined(ignored)} {changing} nothing; "
            "another --call-id makes another capture, `overspill ttl` changes how long it lives"
        )


def _ignored_options(entry: "Entry", given: dict[str, Any]) -> list[str]:
    """Return the options that changed nothing: the same capture was stored before with others."""
    is_other = {
        "--label": bool(given["labels"]) and entry.labels != given["labels"],
        "--tool": bool(given["tool"]) and entry.tool != lazy.wire.fit(given["tool"]),
        "--status": bool(given["status"]) and entry.status != lazy.wire.fit(given["status"]),
        "--content-type": bool(given["content_type"]) and entry.content_type != given["content_type"],
        "--ttl": given["ttl"] is not None and _has_other_lifetime(entry, given["ttl"]),
    }
    return [option for option, is_so in is_other.items() if is_so]


def _has_other_lifetime(entry: "Entry", ttl: int) -> bool:
    """Return whether `ttl` is neither the lifetime it was stored with nor about the one it has from now.

    Storing again extends a lifetime, but not by a minute or a few percent.
    """
    left = (entry.expires - datetime.now(UTC)).total_seconds()
    is_new = abs((entry.expires - entry.created).total_seconds() - ttl) <= _ROUNDING_SECONDS
    return not is_new and abs(left - ttl) > max(_TOLERANCE_SECONDS, _TOLERANCE_SHARE * ttl)


def _joined(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _stored(invocation: "Invocation", source: IO[bytes], metadata: "CaptureMetadata") -> "Entry":
    """Store the content, or keep it on this machine. Raises what storing raises, and `CommandFailure`."""
    start = source.tell()
    try:
        with invocation.client() as client, file_with_progress(source) as content:
            return client.put(content, **asdict(metadata))
    except lazy.spool_fallback.SERVICE_AWAY as error:
        source.seek(start)
        return lazy.spool_fallback.keep_in_spool(invocation, source, metadata, error)


def _source(file: str) -> IO[bytes]:
    """Open the binary file. Standard input is left open. Raises `OSError`."""
    if file != "-":
        return Path(file).open("rb")
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return open(sys.stdin.fileno(), "rb", closefd=False)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, examples=_EXAMPLES)(put)
