"""Pydantic AI: a capability that guards every tool of an agent, those of MCP servers included.

agent = Agent(model, tools=tools, capabilities=[OverspillCapability()])
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_ai import (
    CallToolsNode,
    FunctionToolset,
    ModelRequestNode,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    SkipToolExecution,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ModelResponse, RetryPromptPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolApproved, ToolDenied
from pydantic_ai.toolsets import WrapperToolset

from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter
from overspill.reading.latest import Latest
from overspill.shapes.exception_copies import copy_with_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai.capabilities import AgentNode
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import ToolCall

_CONTROL_FLOW: Final = (ApprovalRequired, CallDeferred, ToolFailedError, ToolRetryError)
_PASSING: Final = (*_CONTROL_FLOW, ValidationError)
_DECISIONS: Final = (ToolApproved, ToolDenied, ModelRetry, RetryPromptPart)
"""The values that a run may get for a call that waited, instead of a result."""
_MAX_REMEMBERED: Final = 1_000
_OWN: Final = {METADATA: "reads captures"}
"""The metadata of the reading tools."""


class OverspillCapability(AbstractCapability[Any]):
    """Guards the results of every tool, and gives the agent `inspect_output` and `list_captures`.

    It is outermost, wherever it stands in the list. The session of a capture is the conversation
    (`conversation_id`). `metadata["overspill"]` of a tool's return part has `Guarded.metadata` if the output
    was cut, beside metadata of the tool's own. What code calls, as in code mode, stays whole. Without
    `guard`: see `Adapter`.
    """

    id: str | None = "overspill"
    """An agent has one of these: the tools that read have fixed names."""

    def __init__(self, guard: Guard | None = None) -> None:
        self.adapter: Adapter = Adapter(guard)
        self._reading = FunctionToolset(
            [_reading_tool(each) for each in self.adapter.reading_tools], metadata=_OWN, id="overspill"
        )
        self._deferred: Latest[str | None, set[str]] = Latest(_MAX_REMEMBERED)
        """By run, the calls that other capabilities were asked to answer in the last node."""

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Return the last one: it was given for the run, or overrides an earlier one."""
        return capabilities[-1]

    def get_ordering(self) -> CapabilityOrdering:
        """Return the outermost place: what other capabilities make of a result is guarded too."""
        return CapabilityOrdering(position="outermost", wrapped_by=[Instrumentation])

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return the tools of the agent, with those that read captures."""
        return _WithReadingTools(toolset, self._reading)

    async def before_node_run(self, ctx: RunContext[Any], *, node: AgentNode[Any]) -> AgentNode[Any]:
        """Guard results of calls that were made elsewhere: a run is given them with its history."""
        if isinstance(node, CallToolsNode) and node.tool_call_results:
            tools = {call.tool_call_id: call.tool_name for call in node.model_response.tool_calls}
            node.tool_call_results = {
                call_id: await self._external(result, tools.get(call_id, ""), call_id, ctx.conversation_id)
                for call_id, result in node.tool_call_results.items()
            }
        return node

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Answer nothing: `after_node_run` guards what other capabilities answer."""
        self._deferred[ctx.run_id] = {call.tool_call_id for call in requests.calls}
        return None

    async def after_node_run(self, ctx: RunContext[Any], *, node: AgentNode[Any], result: Any) -> Any:
        """Guard results of calls that other capabilities answered while the node ran."""
        del node
        deferred = self._deferred.pop(ctx.run_id, ())
        if deferred and isinstance(result, ModelRequestNode):
            result.request.parts = [
                await self._answer(part, ctx.conversation_id)
                if isinstance(part, ToolReturnPart) and part.tool_call_id in deferred
                else part
                for part in result.request.parts
            ]
        return result

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Guard the result of one call, and the messages of failures, of retries and of exceptions."""
        if _is_from_program(ctx, call):
            return await handler(args)
        is_own = tool_def.metadata == _OWN
        named = self.adapter.call(
            tool_def.name, call.tool_call_id, ctx.conversation_id, is_own=is_own, passing=_PASSING
        )
        try:
            async with named:
                result = await _completed(handler, args)
        except ToolFailedError as failed:
            raise await _shortened(failed, failed.tool_failed, named) from failed.__cause__
        except ToolRetryError as retry:
            raise await _shortened(retry, retry.tool_retry, named) from retry.__cause__
        except ValidationError as error:
            raise await _shortened_details(error, named) from error.__cause__
        return await _guarded(result, named)

    async def _external(self, result: Any, tool: str, call_id: str, session: str | None) -> Any:
        if result == "skip" or isinstance(result, _DECISIONS):
            return result
        return await _guarded(result, self.adapter.call(tool, call_id, session))

    async def _answer(self, part: ToolReturnPart, session: str | None) -> ToolReturnPart:
        returned = ToolReturn(part.content, metadata=part.metadata)
        found = await self._external(returned, part.tool_name, part.tool_call_id, session)
        return dataclasses.replace(part, content=found.return_value, metadata=found.metadata)


@dataclasses.dataclass
class _WithReadingTools(WrapperToolset[Any]):
    """The tools of an agent, and the reading tools whose names are free."""

    reading: FunctionToolset[Any]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        theirs, ours = await super().get_tools(ctx), await self.reading.get_tools(ctx)
        return {**theirs, **{name: tool for name, tool in ours.items() if name not in theirs}}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        toolset = self.reading if tool.toolset is self.reading else self.wrapped
        return await toolset.call_tool(name, tool_args, ctx, tool)


async def _guarded(result: Any, call: ToolCall) -> Any:
    plain = _plain(result)
    guarded = await call.process(plain)
    return result if guarded.value is plain else _with_metadata(guarded)


async def _shortened(error: Any, part: Any, call: ToolCall) -> Exception:
    """Return the error that tells the model of a failure, with a part that is short enough."""
    guarded = await call.process(part.content)
    if guarded.notice is None:
        return error
    found = _with_metadata(guarded)
    metadata = {} if not hasattr(part, "metadata") else {"metadata": found.metadata}
    return type(error)(dataclasses.replace(part, content=found.return_value, **metadata))


async def _shortened_details(error: ValidationError, call: ToolCall) -> Exception:
    """Return an error with details that are short enough: a model reads them, and the input in them."""
    details = error.errors(include_url=False, include_context=False)
    guarded = await call.process(details)
    return error if guarded.notice is None else copy_with_message(error, str(guarded.notice))


async def _completed(handler: Callable[[dict[str, Any]], Awaitable[Any]], args: dict[str, Any]) -> Any:
    """Return the result of a call, also of one that a hook answers in its place."""
    try:
        return await handler(args)
    except SkipToolExecution as skipped:
        return skipped.result


def _plain(result: Any) -> Any:
    """Return what a model is shown of a value of a class that can hold no other."""
    if isinstance(result, Enum):
        return result.value
    return str(result) if isinstance(result, Decimal) else result


def _reading_tool(tool: AgentTool) -> Tool[Any]:
    async def call(ctx: RunContext[Any], /, **arguments: Any) -> dict[str, Any]:
        return await tool.acall(arguments, session=ctx.conversation_id)

    return Tool.from_schema(call, tool.name, tool.description, dict(tool.parameters), takes_ctx=True)


def _is_from_program(ctx: RunContext[Any], call: ToolCallPart) -> bool:
    """Return whether code made the call: it is none of those in the model's last response.

    In a realtime session the response may not be in the messages yet.
    """
    if not ctx.messages or not isinstance(ctx.model, Model):
        return False
    last = next((each for each in reversed(ctx.messages) if isinstance(each, ModelResponse)), None)
    return last is None or not any(
        isinstance(part, ToolCallPart) and part.tool_call_id == call.tool_call_id for part in last.parts
    )


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata beside that of the tool, if that is a dict."""
    value = guarded.value
    if guarded.notice is None:
        return value
    if isinstance(value, bytes | bytearray):  # Pydantic AI shows a model bytes as base64
        value = str(guarded.notice)
    returned = value if isinstance(value, ToolReturn) else ToolReturn(value)
    if not isinstance(returned.metadata, dict | None):
        return returned
    return dataclasses.replace(returned, metadata={**(returned.metadata or {}), METADATA: guarded.metadata})
