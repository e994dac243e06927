"""The settings that tools have in a policy that sets none."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from overspill.advice.advice import Now

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES: Final = 50_000
TOOL_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "grep_search": 20_000,
        "find_by_name": 20_000,
        "run_command": 50_000,
        "command_status": 50_000,
        "read_file": 100_000,
    }
)
STRATEGY: Final = "PREVIEW"


def usual_settings(tool: str) -> Now:
    """Return what a tool has."""
    return Now(max_bytes=TOOL_BYTES.get(tool, MAX_BYTES), strategy=STRATEGY)
