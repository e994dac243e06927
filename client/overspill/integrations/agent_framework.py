"""Microsoft Agent Framework: a context provider that guards every tool of an agent.

agent = Agent(client=client, tools=tools, context_providers=[OverspillProvider()])
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from agent_framework import (
    Content,
    ContextProvider,
    FunctionMiddleware,
    FunctionTool,
    MiddlewareFailure,
    MiddlewareTermination,
)
from agent_framework.exceptions import UserInputRequiredException

from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from typing import TypeAlias

    from agent_framework import (
        AgentSession,
        FunctionInvocationContext,
        Message,
        SessionContext,
        SupportsAgentRun,
    )

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import ToolCall

    _CallOf: TypeAlias = Callable[[Content], ToolCall]

_CONTROL_FLOW: Final = (MiddlewareTermination, MiddlewareFailure, UserInputRequiredException)


class OverspillProvider(ContextProvider):
    """Guards the results of every tool, and gives the agent `inspect_output` and `list_captures`.

    The session of a capture is that of the agent. `additional_properties["overspill"]` of a content that was
    cut has `Guarded.metadata`. Code that calls `FunctionTool.invoke` gets the whole. Without `guard`: see
    `Adapter`.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__("overspill")
        self.adapter: Adapter = Adapter(guard)
        self._tools = [_ReadingTool(tool) for tool in self.adapter.reading_tools]
        self._middleware = _Middleware(self.adapter)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add the reading tools whose names are free, and what guards the others.

        Results of calls that were made elsewhere, as of tools that are only declared, come with the messages.
        """
        del state
        names = _tool_names(agent, context)
        ours = [tool for tool in self._tools if tool.name not in names]
        context.extend_tools(self.source_id, ours)
        context.extend_middleware(self.source_id, self._middleware)
        call_of = self._calls(context.input_messages, _names(ours), session.session_id)
        context.input_messages = [await _brought(each, call_of) for each in context.input_messages]

    def _calls(self, messages: Sequence[Message], reading_names: set[str], session: str) -> _CallOf:
        """Return what gives the call of a result in these messages.

        `reading_names` are the names of the reading tools that the agent has.
        """
        contents = [each for message in messages for each in message.contents]
        names = {each.call_id: each.name or "" for each in contents if each.type == "function_call"}

        def call_of(result: Content) -> ToolCall:
            name = names.get(result.call_id, "")
            return self.adapter.call(name, result.call_id, session, is_own=name in reading_names)

        return call_of


class _Middleware(FunctionMiddleware):
    """Stands around each call of a tool."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Guard the result of one call, and the message of an exception that the call raises."""
        if isinstance(context.function, _ReadingTool):  # the framework would refuse what a model writes
            context.result = await context.function.answer(context.arguments, _session(context))
            return
        name, call_id = context.function.name, context.metadata.get("call_id")
        async with (call := self._adapter.call(name, call_id, _session(context), passing=_CONTROL_FLOW)):
            await call_next()
        guarded = await call.process(context.result)
        if guarded.notice is not None:
            context.result = _with_metadata(guarded)


class _ReadingTool(FunctionTool):
    """A reading tool as the framework's own kind."""

    def __init__(self, tool: AgentTool) -> None:
        self._reading = tool
        super().__init__(
            name=tool.name, description=tool.description, func=self._call, input_model=dict(tool.parameters)
        )

    async def answer(self, arguments: Any, session: str | None) -> str:
        """Answer a call, whatever its arguments are."""
        return json.dumps(await self._reading.acall(arguments, session=session), ensure_ascii=False)

    async def _call(self, **arguments: Any) -> str:
        return await self.answer(arguments, None)


def _tool_names(agent: Any, context: SessionContext) -> set[str]:
    """Return the names of the agent's tools, and of those that other providers have added."""
    servers = (tool for server in getattr(agent, "mcp_tools", ()) for tool in server.functions)
    tools = getattr(agent, "default_options", {}).get("tools") or ()
    return _names((*context.tools, *tools, *servers))


def _names(tools: Iterable[Any]) -> set[str]:
    return {getattr(tool, "name", "") for tool in tools}


async def _brought(message: Message, call_of: _CallOf) -> Message:
    """Return the message with the results in it guarded: the same object if none is too long."""
    contents = [await _result(each, call_of) for each in message.contents]
    if all(new is old for new, old in zip(contents, message.contents, strict=True)):
        return message
    changed = copy.copy(message)
    changed.contents = contents
    return changed


async def _result(content: Content, call_of: _CallOf) -> Content:
    if content.type != "function_result" or not content.items:
        return content
    call = call_of(content)
    guarded = await call.process(content.items)
    if guarded.notice is None:
        return content
    facts = {"id": content.id, "exception": content.exception, "annotations": content.annotations}
    return Content.from_function_result(call.id, result=_with_metadata(guarded), **facts)


def _session(context: FunctionInvocationContext) -> str | None:
    return None if context.session is None else context.session.session_id


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata beside the text that was cut."""
    value = guarded.value if isinstance(guarded.value, list) else [Content.from_text(str(guarded.value))]
    notice = str(guarded.notice)
    for content in value:
        if isinstance(content, Content) and content.text and notice in content.text:
            content.additional_properties[METADATA] = guarded.metadata
    return value
