"""The call that a command's output belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CommandCall:
    """The tool, the call and the session that the output belongs to."""

    tool: str
    call_id: str
    session: str | None
    status: str = ""
