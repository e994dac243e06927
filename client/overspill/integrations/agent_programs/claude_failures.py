"""Claude Code: the text for the model about a failed command whose output was cut.

Claude Code keeps the first 30,000 characters of it, shows 10,000 of those, and lets no hook see or replace
more. The end of the output, where the failure is, is gone by then. So the model is told how to get it.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from overspill.integrations.agent_programs.own_command import shell_command

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT: Final = "PostToolUseFailure"
SHELL: Final = "Bash"
_CUT: Final = re.compile(r"\n\.\.\. \[[0-9]+ characters truncated\] \.\.\.\n")
_SHOWN_BYTES: Final = 8_000
"""Less than Claude Code shows of a failed command."""
_LONGEST_COMMAND: Final = 1_000
"""A longer command is not repeated."""


def after_failure(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to run the command of the event so that its output is kept; nothing if it was not cut."""
    tool_input, error = event.get("tool_input"), event.get("error")
    command = tool_input.get("command") if isinstance(tool_input, dict) else None
    if event.get("tool_name") != SHELL or not isinstance(command, str) or not isinstance(error, str):
        return {}
    if not _CUT.search(error):
        return {}
    return {"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": _advice(command)}}


def _advice(command: str) -> str:
    repeated = command if len(command) <= _LONGEST_COMMAND else "THE SAME COMMAND"
    words = [*shell_command(), "run", "--max-bytes", str(_SHOWN_BYTES), "--", "bash", "-c", repeated]
    return (
        "[overspill] The output of this failed command was cut, and its end is stored nowhere. To have "
        f"all of it, run the command once more in this form, and read on from the notice: {shlex.join(words)}"
    )
