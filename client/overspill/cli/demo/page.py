"""Prints the demo's text, and captured text made printable."""

from __future__ import annotations

import json
from typing import Any, Final

from overspill import wire
from overspill.cli import output

_HEAD: Final = 7
_TAIL: Final = 4
_TEXT: Final = 400


def say(text: str) -> None:
    """Print a text at once."""
    output.line(text)
    output.flush()


def title(text: str) -> None:
    """Print a heading."""
    say(f"\n{text}\n{'-' * len(text)}")


def quote(text: str) -> None:
    """Print captured text, indented."""
    for line in text.split("\n"):
        output.text(f"    | {line}".rstrip() + "\n")
    output.flush()


def in_full(value: Any) -> str:
    """Return the text itself, or any other value as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def abbreviated(value: Any) -> str:
    """Return a notice without the middle of its preview, or data with its long texts cut."""
    if not isinstance(value, str):
        return in_full(_with_short_texts(value))
    lines = value.split("\n")
    left_out = len(lines) - _HEAD - _TAIL
    if left_out <= 1:
        return value
    return "\n".join(
        [*lines[:_HEAD], f"   ({left_out} lines of the preview, left out here)", *lines[-_TAIL:]]
    )


def _with_short_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_short_texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_short_texts(part) for part in value]
    if not isinstance(value, str) or len(value) <= _TEXT:
        return value
    return f"{value[:_TEXT]}… (and {len(value) - _TEXT:,} characters)"


def handle_in(value: Any) -> str:
    """Return the capture id that a notice names. Raises `ValueError` if there is none."""
    match = wire.CAPTURE_ID.search(in_full(value))
    if match is None:
        raise ValueError("the notice names no capture")
    return match.group()
