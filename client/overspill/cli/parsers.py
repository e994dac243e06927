"""Parses the texts of arguments. Each function raises `click.BadParameter`, which says what is allowed."""

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import click

from overspill.text.instants import instant_of

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LONGEST: Final = 100 * 365 * 86_400
_PART: Final = re.compile(r"(\d+)\s*([smhdw]?)\s*", re.ASCII)
_DURATION: Final = re.compile(r"\d{1,99}|(?:\d{1,99}\s*[smhdw]\s*)+", re.ASCII)
_MAX_LINES: Final = 2**53
_PORT: Final = re.compile(r"\d{1,5}", re.ASCII)
_LAST_PORT: Final = 65_535
_LINES: Final = re.compile(r"(\d{0,15})(:?)(\d{0,15})", re.ASCII)


def seconds(text: str) -> int:
    """Parse a duration into seconds: `90`, `90s`, `30m`, `1h30m`, `7d` or `1w`."""
    normalized = text.strip().lower()
    parts = _PART.findall(normalized) if _DURATION.fullmatch(normalized) else ()
    found = sum(int(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not found:
        raise click.BadParameter(f"{text!r} is not a duration: use seconds, or 90s, 30m, 1h30m, 7d, 1w")
    if found > _LONGEST:
        raise click.BadParameter(f"{text!r} is longer than 100 years")
    return found


def instant(text: str) -> datetime:
    """Parse a time ago, as `5m`, or one in ISO 8601."""
    try:
        return instant_of(text, datetime.now(UTC))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def line_range(text: str) -> tuple[int, int | None]:
    """Parse `A:B`, `A:`, `:B` or `A` into the first and last line, from 1, inclusive. None is the end."""
    match = _LINES.fullmatch(text)
    if match is None or text in ("", ":"):
        raise click.BadParameter(f"{text!r} is not a range of lines: use 10:20, 10:, :20 or 10")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else None if match[2] else first
    if first < 1 or (last is not None and last < first):
        raise click.BadParameter(f"{text!r}: lines count from 1, and the last must not be before the first")
    return first, last


def tail_of(text: str, *, minimum: int = 1) -> tuple[int | None, int]:
    """Parse `20` into no start and 20 lines, and `+20` into a start at line 20 and 0 lines."""
    if not (text.removeprefix("+").isdecimal() and text.isascii()) or not minimum <= int(text) <= _MAX_LINES:
        raise click.BadParameter(f"{text!r} is not a number of lines: use 20, or +20 to start with line 20")
    return (int(text), 0) if text.startswith("+") else (None, int(text))


def labels_of(pairs: Iterable[str]) -> dict[str, str]:
    """Parse pairs `NAME=VALUE` into a dict."""
    labels: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r} is not a label: use NAME=VALUE", param_hint="--label")
        labels[name] = value
    return labels


def token(variable: str | None) -> str:
    """Return the token in an environment variable, empty if none is named."""
    if variable is None:
        return ""
    if not (found := os.environ.get(variable, "").strip()):
        raise click.BadParameter(f"the environment has no {variable}", param_hint="--token-variable")
    return found


def address(text: str) -> tuple[str, int]:
    """Return the host and the port of a text such as 127.0.0.1:8751."""
    host, _, port = text.rpartition(":")
    if not host or not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8751")
    return host.strip("[]"), int(port)
