"""GitHub Copilot SDK: hooks that guard every tool of Copilot's runtime, and the tools that read.

session = await client.create_session(**guarded_session(model="…", on_permission_request=…))
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import TYPE_CHECKING, Any, Final

from copilot import Tool, ToolInvocation, ToolResult
from copilot.session_events import ToolExecutionCompleteData, ToolExecutionStartData

from overspill.guard.guard import Guard
from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter, adapter_for
from overspill.integrations.host_policy import host_policy
from overspill.reading.latest import Latest
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from copilot import SessionEvent

    from overspill.agent_tools.agent_tool import AgentTool

_TEXT: Final = "textResultForLlm"
_PROGRAMS_SEE: Final = "structuredContent"
"""The part of a result that events have, and the model has not."""
_MAX_REMEMBERED: Final = 1_000


def guarded_session(guard: Guard | None = None, /, **options: Any) -> dict[str, Any]:
    """Return the arguments of `create_session` or `resume_session` with every tool guarded.

    The model gets `inspect_output` and `list_captures` too. The session of a capture is that of Copilot.
    Copilot's own handling of large outputs is turned off: it would cut a result before any hook sees it.
    `structured_content["overspill"]` of a completed tool's event has `Guarded.metadata`. Without `guard` it
    makes one for the service that `OVERSPILL_URL` and `OVERSPILL_KEY` name.

    Raises `ValueError` if the options have another guard.
    """
    known = _adapters(options)
    if known:
        adapter_for(guard, known)
        return options
    adapter = Adapter(Guard(SyncClient(), host_policy("copilot-cli")) if guard is None else guard)
    theirs: list[Tool] = options.get("tools") or []
    names_taken = {tool.name for tool in theirs}
    reading = [_reading_tool(tool) for tool in adapter.reading_tools if tool.name not in names_taken]
    hooks = _Hooks(adapter, {tool.name for tool in reading}, options)
    changed = {
        "tools": [*(_with_failures_guarded(tool, adapter) for tool in theirs), *reading],
        "hooks": {**(options.get("hooks") or {}), "on_post_tool_use": hooks.end},
        "on_event": hooks.note,
        "large_output": {**(options.get("large_output") or {}), "enabled": False},
    }
    if (available := options.get("available_tools")) is not None:
        names = available if isinstance(available, list) else available.to_list()
        changed["available_tools"] = [*names, *(tool.name for tool in reading)]
    return {**options, **changed}


def _adapters(options: Mapping[str, Any]) -> list[Adapter]:
    """Return the adapter of options that are guarded already."""
    owner = getattr((options.get("hooks") or {}).get("on_post_tool_use"), "__self__", None)
    return [owner.adapter] if isinstance(owner, _Hooks) else []


class _Hooks:
    """The hook behind each tool, and the ids of the calls that run.

    `own_tools` are the names of the tools that read: no other tool of a session has one of them. `options`
    has the user's own hook and listener.
    """

    def __init__(self, adapter: Adapter, own_tools: set[str], options: Mapping[str, Any]) -> None:
        self.adapter = adapter
        self._own_tools = own_tools
        self._their_hook: Callable[..., Any] | None = (options.get("hooks") or {}).get("on_post_tool_use")
        self._their_listener: Callable[[SessionEvent], None] | None = options.get("on_event")
        self._running: Latest[str, tuple[str, str]] = Latest(_MAX_REMEMBERED)

    def note(self, event: SessionEvent) -> None:
        """Remember the id of a call that begins: the hook is told only the tool and its arguments."""
        match event.data:
            case ToolExecutionStartData() as data:
                self._running[data.tool_call_id] = _key(data.tool_name, data.arguments)
            case ToolExecutionCompleteData() as data:
                self._running.pop(data.tool_call_id, None)
        if self._their_listener is not None:
            self._their_listener(event)

    async def end(self, called: Any, context: Any) -> dict[str, Any] | None:
        """Answer with what the model sees of a result, if that is shorter. Their own hook comes first."""
        theirs = None if self._their_hook is None else self._their_hook(called, context)
        answer = await theirs if inspect.isawaitable(theirs) else theirs
        result = (answer or {}).get("modifiedResult", called["toolResult"])
        if called["toolName"] in self._own_tools or not isinstance(result, dict):
            return answer
        modified = await self._guarded(result, called)
        return answer if modified is None else {**(answer or {}), "modifiedResult": modified}

    async def _guarded(self, result: dict[str, Any], called: Any) -> dict[str, Any] | None:
        """Return the result with a notice in the place of its text; None if it may stay."""
        call = self.adapter.call(called["toolName"], self._call_id(called), called["sessionId"])
        guarded = await call.process(result.get(_TEXT))
        if guarded.notice is None:
            return None
        beside = result.get(_PROGRAMS_SEE)
        shown = {**(beside if isinstance(beside, dict) else {}), METADATA: guarded.metadata}
        return {**result, _TEXT: guarded.value, _PROGRAMS_SEE: shown}

    def _call_id(self, called: Any) -> str | None:
        """Return the id of the first call of this tool, with these arguments, that still runs."""
        key = _key(called["toolName"], called["toolArgs"])
        found = next((each for each, known in self._running.items() if known == key), None)
        if found is not None:
            del self._running[found]
        return found


def _key(tool: str, arguments: Any) -> tuple[str, str]:
    return tool, json.dumps(arguments, sort_keys=True, default=str)


def _with_failures_guarded(tool: Tool, adapter: Adapter) -> Tool:
    """Return a tool whose failures are guarded too: no hook can replace the text of one."""
    handler = tool.handler
    if handler is None:  # the session's user answers its calls
        return tool

    async def call(invocation: ToolInvocation) -> ToolResult:
        call = adapter.call(tool.name, invocation.tool_call_id, invocation.session_id or None)
        async with call:
            result: Any = handler(invocation)
            if inspect.isawaitable(result):
                result = await result
        if not isinstance(result, ToolResult) or result.result_type == "success":
            return result  # the hook guards it
        guarded = await call.process(result.text_result_for_llm)
        return dataclasses.replace(result, text_result_for_llm=guarded.value)

    return dataclasses.replace(tool, handler=call)


def _reading_tool(tool: AgentTool) -> Tool:
    """Return a reading tool as Copilot's own kind: there from the first request, without a permission."""

    async def call(invocation: ToolInvocation) -> ToolResult:
        answer = await tool.acall(invocation.arguments, session=invocation.session_id or None)
        return ToolResult(json.dumps(answer, ensure_ascii=False))

    return Tool(
        tool.name,
        tool.description,
        call,
        dict(tool.parameters),
        skip_permission=True,
        defer="never",
    )
