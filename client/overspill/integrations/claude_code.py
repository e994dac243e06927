"""Claude Code: answers its event PostToolUse, for hooks in a process of their own and for its SDK.

It needs nothing but the standard library. A result must keep the shape of its tool: Claude Code ignores any
other silently.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.call_context import guarding_tool, minted
from overspill.guard.exemption import bare_name, is_exempt
from overspill.guard.guarded import METADATA
from overspill.integrations.agent_programs.saved_output import chunks
from overspill.shapes.examination import examine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded

_EVENT: Final = "PostToolUse"
_SHELL_CHARS: Final = 30_000
"""Claude Code puts a longer output of a shell into a file of its own."""
_FILE_FIELDS: Final = ("persistedOutputPath", "persistedOutputSize")
_OF_SERVERS: Final = "mcp__"
"""Tools of MCP servers, which may write what they like into their results."""
_SAVED: Final = re.compile(
    r"Error: result \([^)]*\) exceeds maximum allowed tokens\. Output has been saved to (.+)\.\n"
)
"""How it says that the result of an MCP server is in a file."""
_WITH_EXTRA_FIELD: Final = frozenset({"Bash", "Read"})
"""Built-in tools whose results may have a field more. Others might be refused because of it."""


def post_tool_use(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an event: the result that the model sees, or nothing if it may stay.

    `event` has `tool_name`, `tool_response`, `tool_use_id` and `session_id`. Of an output that Claude Code
    has put into a file, all of the file is stored, if it is on this machine.
    """
    if not _is_guarded(guard, event):
        return {}
    with guarding_tool():
        return _answer(event, guard.process_sync(_output(event), **_named(guard, event)))


async def post_tool_use_async(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Do the same as `post_tool_use`, for asynchronous code."""
    if not _is_guarded(guard, event):
        return {}
    with guarding_tool():
        return _answer(event, await guard.process(_output(event), **_named(guard, event)))


def _is_guarded(guard: Guard, event: Mapping[str, Any]) -> bool:
    """Return whether it is a result, and not of a tool that reads: `mcp__overspill__inspect_output`.

    The event has no more of a tool than its name. So what is longer than an answer of ours is guarded.
    """
    tool = event.get("tool_name")
    if event.get("hook_event_name", _EVENT) != _EVENT or not isinstance(tool, str):
        return False
    if "tool_response" not in event:
        return False
    name = bare_name(tool)
    if name not in guard.policy.exempt:
        return True
    shape = examine(event["tool_response"])
    return shape is None or not is_exempt(guard.policy, name, shape)


def _output(event: Mapping[str, Any]) -> Any:
    path = _file_of(event)
    return _data_of(event) if path is None else chunks(path)


def _data_of(event: Mapping[str, Any]) -> Any:
    """Return the structured content of an MCP server, which comes as its JSON; any other result as it is."""
    result = event["tool_response"]
    if not isinstance(result, str) or not event["tool_name"].startswith(_OF_SERVERS) or result[:1] != "{":
        return result
    try:
        return json.loads(result)
    except (ValueError, RecursionError):
        return result


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
    """Return the file in which Claude Code has put all of an output, if it is on this machine."""
    try:
        return _named_file(event)
    except (OSError, ValueError):  # a name that no file can have
        return None


def _named_file(event: Mapping[str, Any]) -> Path | None:
    result = event["tool_response"]
    if isinstance(result, str):
        return _results_file(event, result)
    is_own = isinstance(result, dict) and not event["tool_name"].startswith(_OF_SERVERS)
    given = result.get(_FILE_FIELDS[0]) if is_own else None
    path = Path(given) if isinstance(given, str) else None
    return path if path is not None and path.is_file() else None


def _results_file(event: Mapping[str, Any], text: str) -> Path | None:
    """Return the file that stands for the result of an MCP server, which was too long.

    Only a file of the session's own folder counts: a server may write any path into its results.
    """
    named, transcript = _SAVED.match(text), event.get("transcript_path")
    if named is None or not isinstance(transcript, str):
        return None
    path, folder = Path(named[1]), Path(transcript).with_suffix("") / "tool-results"
    is_ours = path.resolve().parent == folder.resolve() and not path.is_symlink()
    return path if is_ours and path.is_file() else None


def _answer(event: Mapping[str, Any], guarded: Guarded) -> dict[str, Any]:
    if guarded.notice is None:
        return {}
    value, whole = guarded.value, event["tool_response"]
    if _file_of(event) is not None:
        value = _in_its_shape(whole, value)
    elif isinstance(whole, str) and not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    shown = _with_metadata(event["tool_name"], value, guarded)
    return {"hookSpecificOutput": {"hookEventName": _EVENT, "updatedToolOutput": shown}}


def _in_its_shape(original: Any, notice: Any) -> Any:
    """Return the notice as the result of a shell, or of an MCP server, that was put into a file."""
    if not isinstance(original, dict):
        return [{"type": "text", "text": notice}]
    return {**{name: field for name, field in original.items() if name not in _FILE_FIELDS}, "stdout": notice}


def _with_metadata(tool: str, value: Any, guarded: Guarded) -> Any:
    """Return the result with the guard's metadata in a place that programs see and the model does not."""
    if tool in _WITH_EXTRA_FIELD and isinstance(value, dict):
        return {**value, METADATA: guarded.metadata}
    if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("type") == "text":
        return [{**value[0], "_meta": {METADATA: guarded.metadata}}, *value[1:]]
    return value
