"""Commands that read a capture's content: cat, head, tail, lines.

An answer is bounded; these commands go on where it stopped until what was asked for is
there, in bounded memory. With `--json` one answer is printed as it is.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overspill.cli import output
from overspill.cli.arguments import Ref, Within, line_range
from overspill.cli.invocation import Invocation, command

if TYPE_CHECKING:
    from overspill.wire import ByteRange, Text

Count = Annotated[int, typer.Option("-n", "--lines", min=1, help="How many lines.")]


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
    session: Within = None,
) -> None:
    """Print a capture's bytes: exactly as captured, but for control characters on a terminal."""
    from overspill.cli.progress import counted  # noqa: PLC0415  (slow to import)
    from overspill.cli.visible import Visible  # noqa: PLC0415  (as the others)

    wanted = _parsed(byte_range)
    shown = Visible() if output.is_terminal() and not at.raw else None
    with at.source(ref, session) as source:
        size = source.get(ref, session=session).size if wanted is None and _is_watched() else 0
        with source.stream(ref, wanted, session=session) as pieces:
            for piece in counted(pieces, size):
                output.write(shown.feed(piece).encode() if shown else piece)
    if shown:
        output.write(shown.feed(b"", last=True).encode())


def _is_watched() -> bool:
    """Whether somebody sees standard error while the bytes go elsewhere."""
    return sys.stderr is not None and sys.stderr.isatty() and not output.is_terminal()


def _parsed(text: str | None) -> "ByteRange | None":
    if text is None:
        return None
    from overspill.wire import ByteRange  # noqa: PLC0415  (slow to import)

    parsed = ByteRange.parse(f"bytes={text}")
    if parsed is None:
        raise typer.BadParameter(
            f"{text!r} is no range of bytes: say 0-99, 100- or -100", param_hint="--range"
        )
    return parsed


def head(at: Invocation, ref: Ref, *, lines: Count = 50, session: Within = None) -> None:
    """Print the first lines."""
    with at.source(ref, session) as source:
        _print(at, source, ref, session, source.head(ref, lines, ansi=at.raw, session=session))


def tail(at: Invocation, ref: Ref, *, lines: Count = 50, session: Within = None) -> None:
    """Print the last lines."""
    with at.source(ref, session) as source:
        text = source.tail(ref, lines, ansi=at.raw, session=session)
        if text.next and not at.json:  # it holds the last of them only: begin with the first
            start = int(text.next["start"])
            text = source.lines(ref, start, text.total_lines, ansi=at.raw, session=session)
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
    session: Within = None,
) -> None:
    """Print lines by number."""
    start, end = numbers
    with at.source(ref, session) as source:
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
    if replaced:
        output.say(
            "bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}; `overspill cat` has them"
        )


def add_to(app: typer.Typer) -> None:
    for each in (cat, head, tail):
        command(app)(each)
    command(app, "lines")(between)
