"""Settings of tools as a policy file has them, in TOML."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION: Final = 1
"""The version of the file, which its first line says."""
_UNSAFE: Final = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""DEL, C1 controls, and characters that are not seen or reorder others."""


def toml_of(
    tools: Mapping[str, tuple[Mapping[str, int | str], Sequence[str]]], *, head: Sequence[str]
) -> str:
    """Return the text of a file: for each tool its settings, and comments that say why."""
    tables = (f"\n{table_of(tool, *each)}" for tool, each in tools.items())
    return "".join((*(f"# {line}\n" for line in head), f"version = {VERSION}\n", *tables))


def table_of(tool: str, settings: Mapping[str, int | str], reasons: Sequence[str]) -> str:
    """Return the lines of one tool."""
    lines = [*(f"# {reason}" for reason in reasons), f"[tools.{_quoted(tool)}]"]
    for name, value in settings.items():
        lines.append(f"{name} = {_quoted(value) if isinstance(value, str) else value}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a basic string of TOML: as in JSON, but DEL is escaped too (https://toml.io/en/v1.0.0#string).

    So is what a terminal obeys, or what changes the order in which a person reads a line.
    """
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
