"""opencode: a plugin of ours hands each result to the hook, and puts the answer into its place.

opencode puts an output of more than 50 KB or 2,000 lines into a file before it asks any plugin. A result of
an MCP server comes whole, in MCP's own form.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.exemption import bare_name
from overspill.integrations.agent_programs.saved_output import chunks, is_own_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guard import Guard

_FILE_NAME: Final = "tool_"
_SHELL_NOTES: Final = re.compile(
    r"\n\n<shell_metadata>\n(?:(?!<shell_metadata>).)*\n</shell_metadata>\Z", re.DOTALL
)
"""The remark of its shell below an output: the command took too long, or the user ended it."""


def after_tool(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the result that are to change; none if it is not too long."""
    result = event.get("result")
    if not isinstance(result, dict):
        return {}
    if isinstance(result.get("content"), list):
        return _of_server(guard, event, result)
    return _of_own_tool(guard, event, result)


def _of_server(guard: Guard, event: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    guarded = guard.process_sync(
        {"content": result["content"]},
        **_named(guard, event),
        status="error" if result.get("isError") else "",
    )
    return {} if guarded.notice is None else {"content": guarded.value["content"]}


def _of_own_tool(guard: Guard, event: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    text = result.get("output")
    if not isinstance(text, str):
        return {}
    path = _file_of(result)
    guarded = guard.process_sync(text if path is None else chunks(path), **_named(guard, event))
    if guarded.notice is None:
        return {}
    notes = None if path is None else _SHELL_NOTES.search(text)
    return {"output": f"{guarded.notice}{notes[0] if notes else ''}"}


def _named(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the guard names the call. A tool of ours has the name of its server before its own."""
    tool = str(event.get("tool", ""))
    return {
        "tool": bare_name(tool) if bare_name(tool) in guard.policy.exempt else tool,
        "call_id": str(event.get("callID") or "") or None,
        "session": str(event.get("sessionID") or "") or None,
    }


def _file_of(result: dict[str, Any]) -> Path | None:
    """Return the file with all of an output. A tool may name any file: none but opencode's own counts."""
    named = result.get("outputPath")
    path = Path(named) if isinstance(named, str) and named in result["output"] else None
    if path is None or path.parent != _folder() or not path.name.startswith(_FILE_NAME):
        return None
    return path if is_own_file(path) else None


def _folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "opencode" / "tool-output"
