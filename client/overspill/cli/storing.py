"""Commands that change what is stored: put, rm, ttl."""

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

from overspill import wire
from overspill.cli import output
from overspill.cli.arguments import Ref, Session, Ttl, Within, labels_of, seconds
from overspill.cli.exits import Code, Failure, code_of, message_of
from overspill.cli.invocation import Invocation, command
from overspill.cli.progress import watched
from overspill.cli.visible import visible_line
from overspill.cli.waiting import AWAY, About, keep
from overspill.errors import ProblemError

if TYPE_CHECKING:
    from overspill.wire import Entry

_ROUNDED = 2
_HARDLY_SECONDS, _HARDLY_SHARE = 90, 0.03
"""Seconds by which a life may be off what was asked for."""
_EXAMPLES = {
    "put": (
        "make test 2>&1 | overspill put --tool make",
        "overspill put build.log --session run-42 --label job=nightly --ttl 7d",
        "id=$(overspill put report.json --content-type application/json)",
    ),
    "rm": (
        "overspill rm cap_k3v7q2m5x4c6z2b7n5aa",
        "overspill rm --session run-42 --yes",
    ),
    "ttl": ("overspill ttl cap_k3v7q2m5x4c6z2b7n5aa 7d",),
}


def put(  # noqa: PLR0913  (one option for each thing that is kept with a capture)
    at: Invocation,
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="What to store; - is standard input.")] = "-",
    *,
    tool: Annotated[str, typer.Option(help="The tool whose output this is.")] = "",
    call_id: Annotated[str, typer.Option("--call-id", metavar="ID", help="The tool-call id.")] = "",
    session: Session = None,
    ttl: Ttl = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="May be repeated.")
    ] = None,
    content_type: Annotated[
        str | None, typer.Option("--content-type", metavar="TYPE", help="The media type.")
    ] = None,
    status: Annotated[str, typer.Option(help="How the tool ended, in your words.")] = "",
) -> None:
    """Store a file or standard input, and print its handle.

    Where the service is down, it is kept on this machine and uploaded later; the handle is the same.
    """
    try:
        about = About(
            session=at.session() if session is None else session,
            tool=tool,
            call_id=call_id,
            ttl=ttl,
            status=status,
            content_type=content_type,
            labels=labels_of(label or []),
        )
        with _opened(file) as source:
            entry = _stored(at, source, about)
    except ValueError as error:
        raise Failure(str(error), Code.USAGE) from error
    if at.json:
        at.answer(entry)
    else:
        output.line(entry.id)
    _say_unheeded(entry, asdict(about))


def _say_unheeded(entry: "Entry", said: dict[str, Any]) -> None:
    unheeded = _unheeded(entry, said)
    if unheeded:
        changing = "changes" if len(unheeded) == 1 else "change"
        output.say(
            f"{entry.id} was stored before, and stays as it was: {_listed(unheeded)} {changing} nothing; "
            "another --call-id makes another capture, `overspill ttl` changes how long it lives"
        )


def _unheeded(entry: "Entry", said: dict[str, Any]) -> list[str]:
    """The options that changed nothing: the same content of the same call was stored before with others."""
    is_other = {
        "--label": bool(said["labels"]) and entry.labels != said["labels"],
        "--tool": bool(said["tool"]) and entry.tool != wire.fit(said["tool"]),
        "--status": bool(said["status"]) and entry.status != wire.fit(said["status"]),
        "--content-type": bool(said["content_type"]) and entry.content_type != said["content_type"],
        "--ttl": said["ttl"] is not None and _lives_otherwise(entry, said["ttl"]),
    }
    return [option for option, is_so in is_other.items() if is_so]


def _lives_otherwise(entry: "Entry", ttl: int) -> bool:
    """Whether `ttl` seconds are neither what it was stored with nor, about, what it has from now on.

    A longer life than it has is granted to what is stored again, but not by a minute or a few percent.
    """
    left = (entry.expires - datetime.now(UTC)).total_seconds()
    is_new = abs((entry.expires - entry.created).total_seconds() - ttl) <= _ROUNDED
    return not is_new and abs(left - ttl) > max(_HARDLY_SECONDS, _HARDLY_SHARE * ttl)


def _listed(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _stored(at: Invocation, source: IO[bytes], about: "About") -> "Entry":
    """Store it, or keep it on this machine. Raises what storing raises, and `Failure`."""
    start = source.tell()
    try:
        with at.client() as client, watched(source) as content:
            return client.put(content, **asdict(about))
    except AWAY as error:
        source.seek(start)
        return keep(at, source, about, error)


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """A binary file that can be read twice: what a pipe brings is copied to a temporary one."""
    with _source(file) as opened, ExitStack() as stack:
        if opened.seekable():
            yield opened
            return
        copy = stack.enter_context(TemporaryFile(prefix="overspill-put-"))
        copyfileobj(opened, copy)
        copy.seek(0)
        yield copy


def _source(file: str) -> IO[bytes]:
    """A binary file; standard input is left open. Raises `OSError`."""
    if file != "-":
        return Path(file).open("rb")
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return open(sys.stdin.fileno(), "rb", closefd=False)


def rm(
    at: Invocation,
    refs: Annotated[
        list[str] | None, typer.Argument(metavar="[REF]...", help="Capture ids, or call:TOOL_CALL_ID.")
    ] = None,
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Without REF: everything of this session. With call: references: look in it only.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a session is removed.")] = False,
) -> None:
    """Remove captures, or all of a session."""
    if refs:
        _remove(at, refs, session)
    elif session == "":  # a variable that was not set means no session at all
        raise typer.BadParameter("it is empty", param_hint="--session")
    elif session is not None:
        _remove_session(at, session, yes=yes)
    else:
        raise typer.BadParameter("say which captures, or --session SESSION", param_hint="REF")


def _remove(at: Invocation, refs: list[str], session: str | None) -> None:
    """Remove each; one that cannot be removed does not keep the others."""
    code = 0
    with at.client() as client:
        for ref in refs:
            try:
                removed = client.delete(ref, session=session)
            except ProblemError as error:
                output.say(message_of(error))
                code = code or code_of(error)
            else:
                if at.json:
                    at.answer(removed)
    if code:
        raise typer.Exit(code)


def _remove_session(at: Invocation, session: str, *, yes: bool) -> None:

    if not yes and not _confirmed(session):
        raise Failure("nothing was removed", Code.NO)
    with at.client() as client:
        removed = client.delete_session(session)
    if at.json:
        at.answer(removed)
    else:
        output.say(f"removed {removed.captures:,} captures, {removed.stored_size:,} stored bytes")


def _confirmed(session: str) -> bool:

    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure("removing a whole session needs --yes where nobody can be asked", Code.USAGE)
    question = f"Remove every capture of session {visible_line(session)!r}?"
    return typer.confirm(question, err=True)


def ttl(
    at: Invocation,
    ref: Ref,
    duration: Annotated[
        int, typer.Argument(metavar="DURATION", parser=seconds, help="From now: seconds, 30m, 2h, 7d.")
    ],
    *,
    session: Within = None,
) -> None:
    """Change how long a capture lives, and print when it ends."""
    with at.client() as client:
        entry = client.set_ttl(ref, duration, session=session)
    if at.json:
        at.answer(entry)
    else:
        output.line(f"{entry.expires:%Y-%m-%dT%H:%M:%SZ}")


def add_to(app: typer.Typer) -> None:
    for each in (put, rm, ttl):
        command(app, examples=_EXAMPLES[each.__name__])(each)
