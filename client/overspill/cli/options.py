"""The options and arguments that commands share. Options mean the same before and after a command's name."""

from datetime import datetime
from typing import Annotated, Final

import click

from overspill.cli.color import ColorMode
from overspill.cli.parameters import argument, flag, option
from overspill.cli.parsers import instant, seconds

Url = Annotated[str | None, option(metavar="URL", help="The service's URL (default: OVERSPILL_URL).")]
Key = Annotated[
    str | None, option(metavar="KEY", help="The API key. OVERSPILL_KEY is safer: process lists show options.")
]
Json = Annotated[bool, flag(help="Print the service's answer as JSON.")]
Raw = Annotated[bool, flag(help="Print escapes and control characters as they are.")]

Color = Annotated[
    ColorMode | None,
    option(
        help="When to use colour; auto: on terminals only.",
        type=click.Choice(ColorMode, case_sensitive=False),
    ),
]

ANSWER: Final = ("url", "key", "json", "raw")
"""The common options of a command that prints an answer of the service."""
COLORED: Final = (*ANSWER, "color")

Ref = Annotated[str, argument(metavar="REF", help="A capture id, or call:TOOL_CALL_ID.")]
Refs = Annotated[
    tuple[str, ...], argument(nargs=-1, metavar="REF", help="Capture ids, or call:TOOL_CALL_ID.")
]
OutputFile = Annotated[
    str | None,
    option("-o", "--output", metavar="FILE", help="Write to this file; - is standard output."),
]
Since = Annotated[
    datetime | None,
    option(
        metavar="TIME",
        type=instant,
        help="Only lines that came after this time: 30s, 5m, 2h or 1d ago, or ISO 8601 (UTC without a zone).",
    ),
]
Span = Annotated[int, option(metavar="DURATION", type=seconds, help="How far back to look: 12h, 7d, 4w.")]
Session = Annotated[str | None, option(metavar="SESSION", help="The session (default: OVERSPILL_SESSION).")]
SessionFilter = Annotated[
    str | None, option(metavar="SESSION", help="The session in which to look up call:TOOL_CALL_ID.")
]
WholeSession = Annotated[
    str | None,
    option(
        metavar="SESSION",
        help="Without REF: all captures of this session. With call:TOOL_CALL_ID: the session to look in.",
    ),
]
Limit = Annotated[int, option(metavar="NUM", help="List at most NUM.", type=click.IntRange(min=1))]
CallId = Annotated[str | None, option(metavar="ID", help="The id of the tool call.")]
Ttl = Annotated[
    int | None,
    option(metavar="DURATION", type=seconds, help="How long to keep the output: seconds, 30m, 2h, 7d."),
]
