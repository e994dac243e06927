"""Commands that read a capture's content: cat, head, tail, lines.

An answer is bounded; these commands go on where it stopped until what was asked for is
there, in bounded memory. With `--json` one answer is printed as it is.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overspill.cli import output
from overspill.cli.arguments import Into, Ref, Within, line_range, tail_of
from overspill.cli.invocation import Invocation, command
from overspill.cli.progress import counted
from overspill.wire import ByteRange

if TYPE_CHECKING:
    from overspill.wire import Text

_EXAMPLES = {
    "cat": (
        "overspill cat cap_k3v7q2m5x4c6z2b7n5aa | jq .",
        "overspill cat cap_k3v7q2m5x4c6z2b7n5aa -o build.log",
        "overspill cat --range 0-999 call:call_17",
    ),
    "head": (
        "overspill head cap_k3v7q2m5x4c6z2b7n5aa",
        "overspill head -20 call:call_17",
    ),
    "tail": (
        "overspill tail -20 cap_k3v7q2m5x4c6z2b7n5aa",
        "overspill tail -n 5000 cap_k3v7q2m5x4c6z2b7n5aa -o end.log",
        "overspill tail -n +120 cap_k3v7q2m5x4c6z2b7n5aa",
    ),
    "lines": (
        "overspill lines cap_k3v7q2m5x4c6z2b7n5aa 120:140",
        "overspill lines call:call_17 --session run-42 5000:",
    ),
}


def cat(
    at: Invocation,
    ref: Ref,
    *,
    byte_range: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="A-B", help="Bytes A to B, from 0 and inclusive; A- to the end, -N the last N."
        ),
    ] = None,
    into: Into = None,
    session: Within = None,
) -> None:
    """Print all of a capture, or a range of bytes.

    A pipe or a file gets exactly what was captured; a terminal is shown control characters.
    """
    wanted = _parsed(byte_range)
    with at.source(ref, session) as source, output.into(into):
        size = source.get(ref, session=session).size if wanted is None and _is_watched() else 0
        with source.stream(ref, wanted, session=session) as pieces:
            _print_bytes(at, pieces, size)


def _print_bytes(at: Invocation, pieces: Iterator[bytes], size: int) -> None:

    with closing(counted(pieces, size)) as followed:
        output.content(followed, raw=at.raw)
    output.flush()


def _is_watched() -> bool:
    """Whether somebody sees standard error while the bytes go elsewhere."""
    return sys.stderr is not None and sys.stderr.isatty() and not output.is_terminal()


def _parsed(text: str | None) -> "ByteRange | None":
    if text is None:
        return None

    parsed = ByteRange.parse(f"bytes={text}")
    if parsed is None:
        raise typer.BadParameter(
            f"{text!r} is no range of bytes: say 0-99, 100- or -100", param_hint="--range"
        )
    return parsed


def head(
    at: Invocation,
    ref: Ref,
    *,
    lines: Annotated[
        int, typer.Option("-n", "--lines", metavar="NUM", min=1, max=2**53, help="How many lines; also -NUM.")
    ] = 50,
    into: Into = None,
    session: Within = None,
) -> None:
    """Print the first lines."""
    with at.source(ref, session) as source, output.into(into):
        _print(at, source, ref, session, source.head(ref, lines, ansi=at.raw, session=session))


def tail(
    at: Invocation,
    ref: Ref,
    *,
    lines: Annotated[
        str,
        typer.Option("-n", "--lines", metavar="NUM", help="How many lines; also -NUM. +NUM: from that on."),
    ] = "50",
    into: Into = None,
    session: Within = None,
) -> None:
    """Print the last lines."""
    start, count = tail_of(lines)
    with at.source(ref, session) as source, output.into(into):
        if start is None:
            text = source.tail(ref, count, ansi=at.raw, session=session)
            if text.next and not at.json:  # it holds the last of them only: begin with the first
                start = int(text.next["start"])
        if start is not None:
            text = source.lines(ref, start, ansi=at.raw, session=session)
        _print(at, source, ref, session, text)


def between(
    at: Invocation,
    ref: Ref,
    numbers: Annotated[
        Any,
        typer.Argument(
            metavar="A:B", parser=line_range, help="Lines A to B, from 1 and inclusive; also A:, :B and A."
        ),
    ],
    *,
    into: Into = None,
    session: Within = None,
) -> None:
    """Print lines by number."""
    start, end = numbers
    with at.source(ref, session) as source, output.into(into):
        _print(at, source, ref, session, source.lines(ref, start, end, ansi=at.raw, session=session))


def _print(at: Invocation, source: Any, ref: str, session: str | None, text: "Text") -> None:
    """The answer and all that follow it."""
    if at.json:
        at.answer(text)
        return
    replaced = text.replaced
    output.text(text.content, raw=at.raw)
    while text.next:
        output.flush()
        place = text.place
        text = source.lines(ref, **place, ansi=at.raw, session=session)
        output.text(text.content, raw=at.raw)
        replaced = replaced or text.replaced
    output.flush()
    if replaced:
        output.say(
            "bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}; `overspill cat` has them"
        )


def add_to(app: typer.Typer) -> None:
    for each in (cat, head, tail):
        command(app, examples=_EXAMPLES[each.__name__])(each)
    command(app, "lines", examples=_EXAMPLES["lines"])(between)
