"""The command cat: the exact bytes of a capture."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Literal

import click

from overspill.cli import output
from overspill.cli.asciicast.writer import recording
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import OutputFile, Ref, SessionFilter
from overspill.cli.parameters import option
from overspill.cli.progress import pieces_with_progress
from overspill.wire import ByteRange

if TYPE_CHECKING:
    from overspill.spools.holder import SyncSource


@command(
    "overspill cat cap_k3v7q2m5x4c6z2b7n5aa | jq .",
    "overspill cat cap_k3v7q2m5x4c6z2b7n5aa -o build.log",
    "overspill cat --range 0-999 call:call_17",
    "overspill cat --format asciicast -o build.cast cap_k3v7q2m5x4c6z2b7n5aa",
    options=("url", "key", "raw"),
)
def cat(
    invocation: Invocation,
    ref: Ref,
    *,
    byte_range: Annotated[
        str | None,
        option(
            "--range",
            metavar="A-B",
            help="Bytes A to B, counted from 0, both included; A-: to the end; -N: the last N.",
        ),
    ] = None,
    form: Annotated[
        Literal["asciicast"] | None,
        option(
            "--format",
            help="Print a recording of the terminal, with its times.",
            type=click.Choice(["asciicast"]),
        ),
    ] = None,
    into: OutputFile = None,
    session: SessionFilter = None,
) -> None:
    """Print all of a capture, or a range of bytes.

    A pipe or a file gets exactly what was captured. On a terminal, control characters are made visible. With
    --format asciicast, print a recording (version 3) for players of terminals.
    """
    bounds = _parsed_range(byte_range)
    if form is not None and bounds is not None:
        raise click.BadParameter("a recording is of all of a capture", param_hint="--range")
    with invocation.source(ref, session) as source, output.into(into):
        if form is not None:
            _print_recording(invocation, source, ref, session)
            return
        size = source.get(ref, session=session).size if bounds is None and _has_progress() else 0
        with (
            source.stream(ref, bounds, session=session) as pieces,
            closing(pieces_with_progress(pieces, size)) as followed,
        ):
            output.content(followed, raw=invocation.raw)
        output.flush()


def _print_recording(invocation: Invocation, source: "SyncSource", ref: str, session: str | None) -> None:
    entry, timeline = source.get(ref, session=session), source.timeline(ref, session=session)
    with source.stream(entry.id) as pieces:
        output.content(recording(entry, timeline.marks, pieces), raw=invocation.raw)
    output.flush()


def _has_progress() -> bool:
    """Return whether a progress bar helps: standard error is a terminal, and the bytes go elsewhere."""
    return sys.stderr is not None and sys.stderr.isatty() and not output.is_terminal()


def _parsed_range(text: str | None) -> "ByteRange | None":
    if text is None:
        return None

    parsed = ByteRange.parse(f"bytes={text}")
    if parsed is None:
        raise click.BadParameter(
            f"{text!r} is not a range of bytes: use 0-99, 100- or -100", param_hint="--range"
        )
    return parsed
