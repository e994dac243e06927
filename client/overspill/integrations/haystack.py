"""Haystack: guards the tools of an agent, those of its toolsets and MCP servers included.

agent = guard_agent(Agent(chat_generator=generator, tools=tools))
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

from haystack.components.agents import Agent
from haystack.components.agents.state import State  # noqa: TC002  (Haystack reads the annotation)
from haystack.components.agents.state.state_utils import replace_values
from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool, Toolset

from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter, OwnAnswer, adapter_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import ToolCall

AgentT = TypeVar("AgentT", bound=Agent)
SESSION: Final = "overspill_session"
"""The name under which a run's `hook_context` has the session of its captures."""
_POINT: Final = "after_tool"


def guard_agent(agent: AgentT, guard: Guard | None = None) -> AgentT:
    """Return a copy of the agent that is guarded, and has `inspect_output` and `list_captures`.

    The session of a capture is `hook_context["overspill_session"]` of the run, or else that of the guard.
    `meta["overspill"]` of a tool's message that was cut has `Guarded.metadata`. The hook runs after the
    agent's other hooks at `after_tool`. Code that invokes a tool itself gets the whole. Raises `ValueError`
    if the agent has another guard. Without `guard`: see `Adapter`.
    """
    hooks = agent.hooks.get(_POINT, [])
    ours = [each.adapter for each in hooks if isinstance(each, OverspillHook)]
    if ours:
        adapter_for(guard, ours)
        return agent
    hook = OverspillHook(guard)
    tools = [agent.tools] if isinstance(agent.tools, Toolset) else list(agent.tools or ())
    return agent.clone(
        hooks={**agent.hooks, _POINT: [*hooks, hook]}, tools=[*tools, ReadingTools(hook.adapter.guard)]
    )


class OverspillHook:
    """Guards the results of each step's tools, as a hook of an agent at `after_tool`.

    In a pipeline that is written as YAML nothing of a guard is kept: a hook that is read has the guard of its
    environment (see `Adapter`). `guard_agent` adds it together with the tools that read.
    """

    allowed_hook_points: tuple[str, ...] = (_POINT,)

    def __init__(self, guard: Guard | None = None) -> None:
        self.adapter: Adapter = Adapter(guard)

    def run(self, state: State) -> None:
        """Guard the results of the step, in the messages of the state."""
        messages = _messages_of_step(state)
        _put(state, messages, [call.process_sync(result) for result, call in self._calls(messages, state)])

    async def run_async(self, state: State) -> None:
        """Do the same as `run`, for asynchronous code. The results are guarded at the same time."""
        messages = _messages_of_step(state)
        running = [call.process(result) for result, call in self._calls(messages, state)]
        _put(state, messages, [await running[0]] if len(running) == 1 else await asyncio.gather(*running))

    def _calls(self, messages: Sequence[ChatMessage], state: State) -> Iterator[tuple[Any, ToolCall]]:
        """Yield the results of tools, and their calls."""
        for message in messages:
            found: Any = message.tool_call_result
            call = found.origin
            yield found.result, self.adapter.call(call.tool_name, call.id, _session(state))

    def to_dict(self) -> dict[str, Any]:
        """Return the hook as Haystack writes it."""
        return default_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> OverspillHook:
        """Return the hook that was written."""
        return default_from_dict(cls, data)


class ReadingTools(Toolset):
    """The tools that read captures. Each reads what the guard of `OverspillHook` stores."""

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__([_reading_tool(each) for each in Adapter(guard).reading_tools])

    def to_dict(self) -> dict[str, Any]:
        """Return the tools as Haystack writes them."""
        return default_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ReadingTools:
        """Return the tools that were written, with the guard of the environment."""
        return default_from_dict(cls, data)


def _reading_tool(tool: AgentTool) -> Tool:
    def call(overspill_state: State, **arguments: Any) -> dict[str, Any]:
        return tool.call(arguments, session=_session(overspill_state))

    async def acall(overspill_state: State, **arguments: Any) -> dict[str, Any]:
        return await tool.acall(arguments, session=_session(overspill_state))

    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        function=call,
        async_function=acall,
        outputs_to_string={"handler": _as_own},
    )


def _as_own(answer: dict[str, Any]) -> OwnAnswer:
    """Return an answer as the model reads it: the hook sees no more of a call than the name and this text."""
    return OwnAnswer(json.dumps(answer, ensure_ascii=False))


def _messages_of_step(state: State) -> list[ChatMessage]:
    """Return the messages of the tools that have just run: those at the end of the conversation."""
    messages = state.data.get("messages") or []
    start = len(messages)
    while start > 0 and messages[start - 1].tool_call_result is not None:
        start -= 1
    return messages[start:]


def _session(state: State) -> str | None:
    session = (state.data.get("hook_context") or {}).get(SESSION)
    return None if session is None else str(session)


def _put(state: State, messages: Sequence[ChatMessage], guarded: Sequence[Guarded]) -> None:
    """Write the results into the conversation, if any of them has changed."""
    replaced = [_replaced(message, each) for message, each in zip(messages, guarded, strict=True)]
    if all(new is old for new, old in zip(replaced, messages, strict=True)):
        return
    before = state.data["messages"][: -len(replaced)]
    state.set("messages", [*before, *replaced], handler_override=replace_values)


def _replaced(message: ChatMessage, guarded: Guarded) -> ChatMessage:
    """Return the message of a tool with its guarded result, and with the guard's metadata."""
    value, meta = guarded.value, message.meta
    if isinstance(value, OwnAnswer):
        value = str(value)  # whoever reads a saved conversation need not have our class
    elif guarded.notice is None:
        return message
    else:
        meta = {**meta, METADATA: guarded.metadata}
    found: Any = message.tool_call_result
    return ChatMessage.from_tool(value, found.origin, error=found.error, meta=meta)
