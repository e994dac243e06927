"""The options that commands share; before a command's name they mean the same as behind it."""

from typing import Annotated, Final

import typer

from overspill.cli.color import When

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The service (else OVERSPILL_URL).")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="The key (better: OVERSPILL_KEY, which no process list shows)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the service's JSON.")]
Raw = Annotated[bool, typer.Option("--raw", help="Let escapes and control characters through.")]

Color = Annotated[
    When | None,
    typer.Option("--color", help="Colour: on terminals only (auto), always, or never.", show_default=False),
]

COMMON: Final = {
    "url": (Url, None),
    "key": (Key, None),
    "json": (Json, False),
    "raw": (Raw, False),
    "color": (Color, None),
}
ANSWER: Final = ("url", "key", "json", "raw")
"""The options of a command that prints what the service answers."""
COLORED: Final = (*ANSWER, "color")
