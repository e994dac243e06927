"""Claude Code: answers its event PostToolUse, for hooks in a process of their own and for its SDK.

It needs nothing but the standard library. A result must keep the shape of its tool: Claude Code ignores any
other silently.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.call_context import minted
from overspill.integrations.adapter import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded

_EVENT: Final = "PostToolUse"
_SHELL_CHARS: Final = 30_000
"""Claude Code puts a longer output of a shell into a file of its own."""
_READ_CHARS: Final = 256 * 1024
_FILE_FIELDS: Final = ("persistedOutputPath", "persistedOutputSize")
_WITH_EXTRA_FIELD: Final = frozenset({"Bash", "Read"})
"""Built-in tools whose results may have a field more. Others might be refused because of it."""


def post_tool_use(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an event: the result that the model sees, or nothing if it may stay.

    `event` has `tool_name`, `tool_response`, `tool_use_id` and `session_id`. Of a shell's output that Claude
    Code has cut and put into a file, all of the file is stored, if it is on this machine.
    """
    if not _is_guarded(guard, event):
        return {}
    return _answer(event, guard.process_sync(_output(event), **_named(guard, event)))


async def post_tool_use_async(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """As `post_tool_use`, for asynchronous code."""
    if not _is_guarded(guard, event):
        return {}
    return _answer(event, await guard.process(_output(event), **_named(guard, event)))


def _is_guarded(guard: Guard, event: Mapping[str, Any]) -> bool:
    """Return whether it is a result, and not of a tool that reads: `mcp__overspill__inspect_output`."""
    tool = event.get("tool_name")
    if event.get("hook_event_name", _EVENT) != _EVENT or not isinstance(tool, str):
        return False
    return "tool_response" in event and tool.rpartition("__")[2] not in guard.policy.exempt


def _output(event: Mapping[str, Any]) -> Any:
    path = _file_of(event)
    return event["tool_response"] if path is None else _chunks(path)


def _named(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the guard names the call, and the policy for what Claude Code has put into a file."""
    named = {
        "tool": event["tool_name"],
        "call_id": event.get("tool_use_id") or minted(),
        "session": event.get("session_id"),
    }
    if _file_of(event) is None:
        return named
    return {**named, "policy": dataclasses.replace(guard.policy, max_bytes=_SHELL_CHARS, tools={})}


def _file_of(event: Mapping[str, Any]) -> Path | None:
    """Return the file in which Claude Code has put all of a shell's output, if it is on this machine."""
    result = event["tool_response"]
    given = result.get(_FILE_FIELDS[0]) if isinstance(result, dict) else None
    path = Path(given) if isinstance(given, str) else None
    return path if path is not None and path.is_file() else None


def _chunks(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        while chunk := file.read(_READ_CHARS):
            yield chunk


def _answer(event: Mapping[str, Any], guarded: Guarded) -> dict[str, Any]:
    if guarded.notice is None:
        return {}
    value = guarded.value
    if _file_of(event) is not None:
        whole = event["tool_response"].items()
        value = {**{name: field for name, field in whole if name not in _FILE_FIELDS}, "stdout": value}
    shown = _with_metadata(event["tool_name"], value, guarded)
    return {"hookSpecificOutput": {"hookEventName": _EVENT, "updatedToolOutput": shown}}


def _with_metadata(tool: str, value: Any, guarded: Guarded) -> Any:
    """Return the result with the guard's metadata in a place that programs see and the model does not."""
    if tool in _WITH_EXTRA_FIELD and isinstance(value, dict):
        return {**value, METADATA: guarded.metadata}
    if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("type") == "text":
        return [{**value[0], "_meta": {METADATA: guarded.metadata}}, *value[1:]]
    return value
