"""What the demo prints: plain text, and what is captured made harmless."""

from __future__ import annotations

import json
from typing import Any, Final

from overspill import wire
from overspill.cli import output

_HEAD: Final = 7
_TAIL: Final = 4
_PREVIEW: Final = 120


def say(text: str) -> None:
    output.line(text)
    output.flush()


def title(text: str) -> None:
    say(f"\n{text}\n{'-' * len(text)}")


def quote(text: str) -> None:
    """Captured text, set off."""
    for line in text.split("\n"):
        output.text(f"    | {line}".rstrip() + "\n")
    output.flush()


def in_full(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def abbreviated(value: Any) -> str:
    """A notice with the middle of its preview left out; in a dict, all of that but its beginning."""
    if isinstance(value, dict):
        preview = value["preview"]
        return in_full(
            {**value, "preview": f"{preview[:_PREVIEW]}… (and {len(preview) - _PREVIEW:,} characters)"}
        )
    lines = str(value).split("\n")
    left_out = len(lines) - _HEAD - _TAIL
    if left_out <= 1:
        return str(value)
    return "\n".join(
        [*lines[:_HEAD], f"   ({left_out} lines of the preview, left out here)", *lines[-_TAIL:]]
    )


def handle_in(value: Any) -> str:
    """The capture id that a notice names. Raises `ValueError` where there is none."""
    text = value["capture"] if isinstance(value, dict) else str(value)
    match = wire.CAPTURE_ID.search(text)
    if match is None:
        raise ValueError("the notice names no capture")
    return match.group()
