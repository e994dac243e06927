"""LangChain, LangGraph and deepagents: a middleware that guards every tool of an agent.

agent = create_agent(model, tools, middleware=[OverspillMiddleware()])
node = ToolNode(tools, **tool_wrappers())                    # LangGraph without create_agent
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002  (LangChain reads the annotation)
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphBubbleUp

from overspill.guard.call_context import is_program, minted
from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from langchain.agents.middleware.types import ToolCallRequest
    from langgraph.types import Command

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded

    _Result: TypeAlias = ToolMessage | Command[Any]

_CONTROL_FLOW: Final = (GraphBubbleUp,)
"""An interrupt, which is no result."""


class OverspillMiddleware(AgentMiddleware):
    """Guards the results of every tool, and gives the agent `inspect_output` and `list_captures`.

    Put it first: the first middleware is the outermost, and sees what the others made of a result. The
    session of a capture is the thread of the graph (`configurable.thread_id`), or else that of the guard.
    `response_metadata["overspill"]` of a message that was cut has `Guarded.metadata`. What code calls
    (`caller` of Anthropic's programmatic tool calls) stays whole. Without `guard`: see `Adapter`.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__()
        self.adapter: Adapter = Adapter(guard)
        self.tools = [structured_tool(tool) for tool in self.adapter.reading_tools]

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Guard the result of one call, and the message of an exception that the call raises."""
        if _is_from_program(request):
            return handler(request)
        call = _named(request)
        with self.adapter.calling(**call, passing=_CONTROL_FLOW):
            result = handler(request)
        return _with_metadata(self.adapter.process_sync(result, **call))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Do the same as `wrap_tool_call`, for asynchronous code."""
        if _is_from_program(request):
            return await handler(request)
        running = self.adapter.guarded(handler(request), passing=_CONTROL_FLOW, **_named(request))
        return _with_metadata(await running)


def tool_wrappers(guard: Guard | None = None) -> dict[str, Any]:
    """Return the arguments with which LangGraph's `ToolNode` guards its tools: see `OverspillMiddleware`."""
    middleware = OverspillMiddleware(guard)
    return {"wrap_tool_call": middleware.wrap_tool_call, "awrap_tool_call": middleware.awrap_tool_call}


class _ReadingTool(StructuredTool):
    """A reading tool as LangChain's own kind."""


def structured_tool(tool: AgentTool) -> StructuredTool:
    """Return a reading tool as LangChain's own kind. Its calls are narrowed to the thread of the graph."""

    def call(overspill_config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        return tool.call(arguments, session=_thread(overspill_config))

    async def acall(overspill_config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        return await tool.acall(arguments, session=_thread(overspill_config))

    return _ReadingTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        func=call,
        coroutine=acall,
    )


def _named(request: ToolCallRequest) -> dict[str, Any]:
    """Return how the guard names the call: its tool, id and session, and whether the tool is ours."""
    config: Any = getattr(request.runtime, "config", None) or {}
    call = request.tool_call
    known = {"tool": call["name"], "call_id": call["id"] or minted(), "session": _thread(config)}
    return {**known, "is_own": isinstance(request.tool, _ReadingTool)}


def _thread(config: RunnableConfig) -> str | None:
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def _is_from_program(request: ToolCallRequest) -> bool:
    """Return whether code made the call: Anthropic's message says so beside the call."""
    state = request.state
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", ())
    last = next((each for each in reversed(messages or ()) if isinstance(each, AIMessage)), None)
    if last is None or not isinstance(last.content, list):
        return False
    blocks = (block for block in last.content if isinstance(block, dict))
    return any(
        block.get("id") == request.tool_call["id"] and is_program(block.get("caller")) for block in blocks
    )


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata in the message of the call."""
    value = guarded.value
    if guarded.notice is None:
        return value
    if isinstance(value, ToolMessage):
        known = {**value.response_metadata, METADATA: guarded.metadata}
        return value.model_copy(update={"response_metadata": known})
    return value
