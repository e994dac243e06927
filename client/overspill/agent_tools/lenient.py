"""Reads arguments as models mean them: handles in brackets, numbers as text, modes in capitals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from overspill import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

_AROUND: Final = " \t\r\n\"'`“”‘’«»<>()[]{}.,;"  # noqa: RUF001  (quotes of every kind)
_CLOSING: Final = "\"'`“”‘’«»>)]},; \t\r\n"  # noqa: RUF001
_HANDLE: Final = re.compile(rf"(?<![A-Za-z0-9]){wire.CAPTURE_ID.pattern}(?![A-Za-z0-9])")
_NUMBER: Final = re.compile(r"([+-]?[0-9][0-9,]{0,20})(?:\.0*)?")
_LONGEST: Final = 1_000
"""Characters in which a handle is looked for."""
_NUMBERS: Final = frozenset({"lines", "context_lines", "start", "end", "max_matches", "offset", "max_chars"})
_WHEN_GIVEN: Final = (("pattern", "grep"), ("start", "range"), ("end", "range"))
"""What the mode is where none is given but one of these is."""


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` without nulls, with the mode that it asks for, and with plain numbers and handles."""
    meant = {name: value for name, value in given.items() if value is not None}
    if "mode" not in meant:
        meant |= next(({"mode": mode} for name, mode in _WHEN_GIVEN if name in meant), {})
    for name, value in meant.items():
        if isinstance(value, str):
            meant[name] = _meant(name, value)
    return meant


def _meant(name: str, text: str) -> str | int:
    if name == "mode":
        return text.strip(_AROUND).lower()
    if name in _NUMBERS:
        found = _NUMBER.fullmatch(text.strip(_AROUND))
        return text if found is None else int(found[1].replace(",", ""))
    return handle(text) if name == "capture" else text


def handle(text: str) -> str:
    """Return the capture id or `call:` reference in `text`; what is none only without spaces around it."""
    text = text.strip()
    if not text.startswith(wire.CALL_PREFIX) and (found := _HANDLE.search(text[:_LONGEST].lower())):
        return found[0]
    inner = text.lstrip(_AROUND)
    if inner.startswith(wire.CALL_PREFIX) and inner != text:
        return inner.rstrip(_CLOSING)
    return text
