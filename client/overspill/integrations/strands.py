"""Strands Agents: a plugin that guards every tool of an agent, those of MCP servers included.

agent = Agent(model, tools=tools, plugins=[OverspillPlugin()])
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeToolCallEvent,
    HookOrder,
    MessageAddedEvent,
)
from strands.plugins import Plugin
from strands.tools import PythonAgentTool

from overspill.guard.call_context import begin, end, minted
from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter

if TYPE_CHECKING:
    from strands import Agent

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded

_MAX_REMEMBERED: Final = 1_000


class OverspillPlugin(Plugin):
    """Guards the results of every tool, and gives the agent `inspect_output` and `list_captures`.

    It runs after all other hooks, wherever it stands in the list: they see whole results. The session of a
    capture is that of the agent's session manager, or else that of the guard. `metadata["overspill"]` of a
    tool result that was cut has `Guarded.metadata`. Code that calls `agent.tool.NAME(…)` gets the whole; what
    Strands writes of it into the conversation is guarded. One plugin may serve several agents. Without
    `guard`: see `Adapter`.
    """

    name = "overspill"

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__()
        self.adapter: Adapter = Adapter(guard)
        self._called_by_code: deque[str] = deque(maxlen=_MAX_REMEMBERED)

    def init_agent(self, agent: Agent) -> None:
        """Add the hooks to an agent, and the tools that read, but for one whose name the agent's own has."""
        taken = {name.replace("-", "_") for name in agent.tool_registry.registry}  # Strands takes both as one
        free = [_reading_tool(each) for each in self.adapter.reading_tools if each.name not in taken]
        agent.tool_registry.process_tools(list(free))
        agent.add_hook(_before_tool_call, BeforeToolCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._after_tool_call, AfterToolCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._message_added, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        agent.add_hook(_after_invocation, AfterInvocationEvent)

    async def _after_tool_call(self, event: AfterToolCallEvent) -> None:
        end()
        if event.retry:
            return
        if "request_state" not in event.invocation_state:  # only runs of the agent have one
            self._called_by_code.append(event.tool_use["toolUseId"])
            return
        event.result = await self._guarded(event.result, event.tool_use, event.agent)

    async def _message_added(self, event: MessageAddedEvent) -> None:
        """Guard what a call by code leaves in the conversation."""
        if not self._called_by_code or event.message["role"] != "user":
            return
        content = event.message["content"]
        for index, block in enumerate(content):
            result = block.get("toolResult")
            if result is None or result["toolUseId"] not in self._called_by_code:
                continue
            self._called_by_code.remove(result["toolUseId"])
            use = _use_of(result["toolUseId"], event.agent)
            content[index] = {"toolResult": await self._guarded(result, use, event.agent)}

    async def _guarded(self, result: Any, use: Any, agent: Any) -> Any:
        name = use["name"]
        is_own = isinstance(agent.tool_registry.registry.get(name), _ReadingTool)
        call = self.adapter.call(name, use.get("toolUseId"), _session(agent), is_own=is_own)
        return _with_metadata(await call.process(result))


def _before_tool_call(event: BeforeToolCallEvent) -> None:
    """Let what the tool captures itself belong to its call."""
    begin(event.tool_use.get("toolUseId") or minted(), _session(event.agent))


def _after_invocation(_event: AfterInvocationEvent) -> None:
    """Forget a call that has not ended: it waits for a person, or goes on in the background."""
    end()


class _ReadingTool(PythonAgentTool):
    """A reading tool as Strands' own kind."""


def _reading_tool(tool: AgentTool) -> PythonAgentTool:
    async def call(tool_use: Any, **state: Any) -> dict[str, Any]:
        answer = await tool.acall(tool_use["input"], session=_session(state.get("agent")))
        text = json.dumps(answer, ensure_ascii=False)
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}

    schema = {"json": dict(tool.parameters)}
    spec: Any = {"name": tool.name, "description": tool.description, "inputSchema": schema}
    return _ReadingTool(tool.name, spec, call)


def _session(agent: Any) -> str | None:
    """Return the id of the agent's session manager. Without one, `agent.session_id` is a random text."""
    return getattr(getattr(agent, "_session_manager", None), "session_id", None)


def _use_of(call_id: str, agent: Any) -> Any:
    """Return the last tool use with this id."""
    blocks = (block for message in reversed(agent.messages) for block in message["content"])
    uses = (block["toolUse"] for block in blocks if "toolUse" in block)
    return next((use for use in uses if use["toolUseId"] == call_id), {"name": "", "toolUseId": call_id})


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata where Strands keeps that of MCP servers."""
    value = guarded.value
    if guarded.notice is None or not isinstance(value, dict):
        return value
    return {**value, "metadata": {**(value.get("metadata") or {}), METADATA: guarded.metadata}}
