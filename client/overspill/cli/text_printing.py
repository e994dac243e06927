"""Prints lines of a capture of any number, as head, tail and lines do.

One answer of the service is bounded: the next ones follow until all lines that were asked for are printed.
Memory stays bounded too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.cli import output
from overspill.text.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from overspill.cli.invocation import Invocation
    from overspill.wire import Text


def print_text(
    invocation: Invocation,
    source: Any,
    ref: str,
    session: str | None,
    text: Text,
    *,
    since: datetime | None = None,
) -> None:
    """Print `text` and the answers that follow it. With `--json`, print `text` alone, as it came.

    `text` has only lines that came after `since`, and so has what follows it.
    """
    if invocation.answered(text):
        return
    replaced = rewritten = False
    for page in text_pages(source, ref, text, ansi=invocation.raw, session=session):
        output.text(page.content, raw=invocation.raw)
        output.flush()
        replaced, rewritten = replaced or page.replaced, rewritten or page.rewritten is True
    if page.start_line > max(1, page.total_lines):
        output.say(_nothing_text(page, since))
    if isinstance(page.note, str):
        output.say(page.note)
    if rewritten:
        output.say(
            "of lines that were rewritten, as progress bars are, the last writing is shown; --raw shows all"
        )
    if replaced:
        output.say(
            "bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}; `overspill cat` has them"
        )


def text_pages(source: Any, ref: str, text: Text, **options: Any) -> Iterator[Text]:
    """Yield `text` and the answers that follow it."""
    yield text
    while text.next:
        text = source.lines(ref, **text.place, **options)
        yield text


def _nothing_text(text: Text, since: datetime | None) -> str:
    if since is not None:
        return f"no such line came after {since.isoformat(timespec='seconds')}"
    return f"there is no line {text.start_line}: the capture has {plural(text.total_lines, 'line')}"
