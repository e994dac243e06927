"""LangChain, LangGraph and deepagents: a middleware that guards every tool of an agent.

agent = create_agent(model, tools, middleware=[OverspillMiddleware()])
node = ToolNode(tools, **tool_wrappers())                    # LangGraph without create_agent
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002  (LangChain reads the annotation)
from langchain_core.tools import StructuredTool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from overspill.guard.call_context import is_program
from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from typing import TypeAlias

    from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.tools import BaseTool

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import ToolCall

    _Result: TypeAlias = ToolMessage | Command[Any]
    _Exchange: TypeAlias = tuple[ToolMessage, ToolMessage]

_CONTROL_FLOW: Final = (GraphBubbleUp,)
"""An interrupt, which is no result."""
_MAX_REMEMBERED: Final = 1_000


class OverspillMiddleware(AgentMiddleware):
    """Guards the results of every tool, and gives the agent `inspect_output` and `list_captures`.

    Put it first: the first middleware is the outermost, and sees what the others made of a result. The
    session of a capture is the thread of the graph (`configurable.thread_id`), or else that of the guard.
    `response_metadata["overspill"]` of a message that was cut has `Guarded.metadata`. What code calls
    (`caller` of Anthropic's programmatic tool calls) stays whole. Results that no tool of the agent returned
    are guarded before the model is called: a person's answers, and what the input brings. Without `guard`:
    see `Adapter`.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__()
        self.adapter: Adapter = Adapter(guard)
        self.tools: list[BaseTool] = [structured_tool(tool) for tool in self.adapter.reading_tools]
        self._returned: Latest[tuple[str | None, str], int] = Latest(_MAX_REMEMBERED)
        """By session and call, a hash of what the tool's message said when it left `wrap_tool_call`."""

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Guard the result of one call, and the message of an exception that the call raises."""
        if _is_from_program(request.state, request.tool_call["id"]):
            return handler(request)
        with (call := self._call(request)):
            result = handler(request)
        return self._returning(call.process_sync(result), call.session)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Do the same as `wrap_tool_call`, for asynchronous code."""
        if _is_from_program(request.state, request.tool_call["id"]):
            return await handler(request)
        call = self._call(request)
        return self._returning(await call.run(handler(request)), call.session)

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse | ExtendedModelResponse:
        """Guard results that `wrap_tool_call` has not returned. The state keeps what the model is shown."""
        brought = list(self._brought(request))
        shown = _changed(brought, [call.process_sync(each) for each, call in brought])
        if not shown:
            return handler(request)
        return _keeping(request, handler(_showing(request, shown)), shown)

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse | ExtendedModelResponse:
        """Do the same as `wrap_model_call`, for asynchronous code."""
        brought = list(self._brought(request))
        shown = _changed(brought, [await call.process(each) for each, call in brought])
        if not shown:
            return await handler(request)
        return _keeping(request, await handler(_showing(request, shown)), shown)

    def _call(self, request: ToolCallRequest) -> ToolCall:
        config: Any = getattr(request.runtime, "config", None) or {}
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        is_own = isinstance(request.tool, _ReadingTool)
        return self.adapter.call(name, call_id, _thread(config), is_own=is_own, passing=_CONTROL_FLOW)

    def _returning(self, guarded: Guarded, session: str | None) -> Any:
        value = _with_metadata(guarded)
        for message in _messages(value):
            self._returned[session, message.tool_call_id] = _hash(message)
        return value

    def _brought(self, request: ModelRequest) -> Iterator[tuple[ToolMessage, ToolCall]]:
        """Yield the results since the model's last message, but for what `wrap_tool_call` has returned.

        If the run goes on in another process, answers of reading tools are among them.
        """
        session = _thread(get_config())
        results, names = _last_results(request.messages)
        for each in results:
            call_id = each.tool_call_id
            was_returned = self._returned.get((session, call_id)) == _hash(each)
            if not was_returned and not _is_from_program(request.state, call_id):
                tool = each.name or names.get(call_id) or ""
                yield each, self.adapter.call(tool, call_id, session, is_own=None)


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


def _thread(config: RunnableConfig) -> str | None:
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def _last_results(messages: Sequence[Any]) -> tuple[list[ToolMessage], dict[str | None, str]]:
    """Return the results since the model's last message, and the names of the tools that it called, by id."""
    results: list[ToolMessage] = []
    for each in reversed(messages):
        if isinstance(each, AIMessage):
            return results[::-1], {call["id"]: call["name"] for call in each.tool_calls}
        if isinstance(each, ToolMessage):
            results.append(each)
    return results[::-1], {}


def _messages(result: Any) -> list[ToolMessage]:
    """Return a tool's message, or those that its command adds to the conversation."""
    update = result.update if isinstance(result, Command) else None
    brought = update.get("messages") if isinstance(update, dict) else update
    found = [result] if update is None else brought if isinstance(brought, list) else []
    return [each for each in found if isinstance(each, ToolMessage)]


def _hash(message: ToolMessage) -> int:
    """Return a hash of what the message says. Its pictures, which may be large, count only as blocks."""
    content = message.content
    return hash(content if isinstance(content, str) else (str(message.text), len(content)))


def _is_from_program(state: Any, call_id: str | None) -> bool:
    """Return whether code made the call: Anthropic's message says so beside the call."""
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", ())
    last = next((each for each in reversed(messages or ()) if isinstance(each, AIMessage)), None)
    if last is None or not isinstance(last.content, list):
        return False
    blocks = (block for block in last.content if isinstance(block, dict))
    return any(block.get("id") == call_id and is_program(block.get("caller")) for block in blocks)


def _changed(brought: Sequence[tuple[ToolMessage, Any]], guarded: Sequence[Guarded]) -> list[_Exchange]:
    """Return the messages that the guard changed."""
    both = zip(brought, guarded, strict=True)
    return [(message, _with_metadata(each)) for (message, _), each in both if each.value is not message]


def _showing(request: ModelRequest, shown: Sequence[_Exchange]) -> ModelRequest:
    """Return the request with the guarded messages. Another middleware may have made some without ids."""
    known = {id(old): new for old, new in shown}
    return request.override(messages=[known.get(id(each), each) for each in request.messages])


def _keeping(
    request: ModelRequest, response: ModelResponse, shown: Sequence[_Exchange]
) -> ExtendedModelResponse:
    """Return the response with what replaces messages in the state of the graph: only those that it has."""
    ids = {each.id for each in request.state["messages"]}
    update = {"messages": [new for _, new in shown if new.id in ids]}
    return ExtendedModelResponse(response, Command(update=update))


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata in the message of the call."""
    value = guarded.value
    if guarded.notice is None:
        return value
    if isinstance(value, ToolMessage):
        known = {**value.response_metadata, METADATA: guarded.metadata}
        return value.model_copy(update={"response_metadata": known})
    return value
