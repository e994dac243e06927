"""Copilot CLI: its postToolUse hook replaces a result by another one.

Copilot puts an output of more than 20 KiB into a temporary file before it asks any hook.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.integrations.agent_programs.saved_output import chunks, is_own_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guard import Guard

_TEXT: Final = "textResultForLlm"
_SAVED: Final = re.compile(
    r"Output too large to read at once \([^)]*\)\. "
    r"Saved to: (.+/[0-9]+-copilot-tool-output-[0-9a-z-]+\.txt)\n"
)
"""The text that replaces an output that is in a file."""


def post_tool_use(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a postToolUse event: the result with a notice, if its text is too long."""
    result = event.get("toolResult")
    text = result.get(_TEXT) if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(text, str):
        return {}
    path = _file_of(text)
    guarded = guard.process_sync(
        text if path is None else chunks(path),
        tool=str(event.get("toolName", "")),
        session=str(event.get("sessionId", "")),
    )
    if guarded.notice is None:
        return {}
    return {"modifiedResult": {**result, _TEXT: str(guarded.notice)}}


def _file_of(text: str) -> Path | None:
    """Return the file that stands for an output. A tool may write such a text: no other file counts."""
    named = _SAVED.match(text)
    path = None if named is None else Path(named[1])
    if path is None or path.parent != Path(tempfile.gettempdir()):
        return None
    return path if is_own_file(path) else None
