"""The process that an agent program starts for each tool call.

It reads an event on standard input, and writes an answer to standard output. Most results are short, so
nothing but this module is imported for them. If anything goes wrong, the program gets an answer that changes
nothing, and the reason is on standard error.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALL_EVENT_BYTES: Final = 8_000
"""An event of at most this size holds no result that is too long by the default limits."""
_NAMES_A_FILE: Final = (
    b"persistedOutputPath",
    b"Output has been saved to",
    b"-copilot-tool-output-",
    b"outputPath",
)
"""The texts of Claude Code, Copilot and opencode about an output that they have put into a file."""
MAX_EVENT_BYTES: Final = 512 * 1024 * 1024
_NOTHING: Final = "{}"
_CLAUDE_CODE: Final = "claude-code"
_FAILURE: Final = "PostToolUseFailure"
_CODEX: Final = "codex"
_AFTER_TOOL: Final = {
    _CLAUDE_CODE: ("claude_code", "post_tool_use"),
    "gemini-cli": ("agent_programs.gemini_cli", "after_tool"),
    "copilot-cli": ("agent_programs.copilot_cli", "post_tool_use"),
    "opencode": ("agent_programs.opencode", "after_tool"),
}
"""The module and the function that guard a result, by program: each is imported for its program only."""


def main(program: str) -> int:
    """Answer the event on standard input for this program. Return the exit code, which is always 0."""
    answer = _NOTHING
    try:
        answer = answer_text(program, sys.stdin.buffer.read(MAX_EVENT_BYTES + 1))
    except Exception as error:  # noqa: BLE001  (the boundary: a hook never stands in its program's way)
        _write("stderr", f"overspill: the hook changes nothing: {type(error).__name__}: {error}\n")
    _write("stdout", f"{answer}\n")
    return 0


def _write(name: str, text: str) -> None:
    """Write to a standard stream, unless its other side is gone: then nobody waits for it."""
    stream = getattr(sys, name)
    if stream is None:  # it was closed from the beginning
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        setattr(sys, name, None)  # Python would try again as it ends, and fail


def answer_text(program: str, event: bytes) -> str:
    """Return the answer to an event, as JSON. Raises `ValueError` for an event that is wrong or too long."""
    if len(event) > MAX_EVENT_BYTES:
        raise ValueError(f"the event has more than {MAX_EVENT_BYTES} bytes")
    if program != _CODEX and _is_surely_short(event):
        return _NOTHING
    fields = json.loads(event)
    if not isinstance(fields, dict):
        raise ValueError("the event is not a JSON object")  # noqa: TRY004  (a wrong value from outside)
    return json.dumps(_answer(program, fields), allow_nan=False)


def _is_surely_short(event: bytes) -> bool:
    """Return whether the event holds no result that is too long, and names no file with one."""
    if len(event) > SMALL_EVENT_BYTES or os.environ.get("OVERSPILL_POLICY"):
        return False
    return not any(words in event for words in _NAMES_A_FILE)


def _answer(program: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an event; empty if nothing is to change. Each import is for its program only."""
    if program == _CODEX:
        from overspill.integrations.agent_programs.codex import before_tool_use  # noqa: PLC0415

        return before_tool_use(event)
    if program == _CLAUDE_CODE and event.get("hook_event_name") == _FAILURE:
        from overspill.integrations.agent_programs.claude_failures import after_failure  # noqa: PLC0415

        return after_failure(event)
    if program not in _AFTER_TOOL:
        there_are = "claude-code, gemini-cli, codex, copilot-cli and opencode"
        raise ValueError(f"there is no hook for {program!r}; there are {there_are}")
    from overspill.integrations.agent_programs.results import answered  # noqa: PLC0415

    module, function = _AFTER_TOOL[program]
    return answered(program, getattr(import_module(f"overspill.integrations.{module}"), function), event)
