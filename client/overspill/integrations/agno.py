"""agno: one line that guards every tool of an agent or a team.

agent = guard_agent(Agent(model=model, tools=tools))
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from agno.exceptions import AgentRunException, RunCancelledException
from agno.run.base import BaseRunOutputEvent
from agno.tools import Toolkit
from agno.tools.function import Function, ToolResult

from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import OwnAnswer, adapter_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agno.models.response import ToolExecution
    from agno.run import RunContext
    from agno.run.requirement import RunRequirement

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import Adapter, ToolCall

AgentT = TypeVar("AgentT", bound=Any)
_CONTROL_FLOW = (AgentRunException, RunCancelledException)


def guard_agent(agent: AgentT, guard: Guard | None = None) -> AgentT:
    """Guard every tool of an `Agent` or a `Team`, and give it `inspect_output` and `list_captures`.

    Return the same object. One that is guarded stays as it is. Members of a team need the line too. The
    session of a capture is that of the run. `ToolResult.metadata["overspill"]` has `Guarded.metadata`. agno
    tells hooks no id of a call, so captures have ids of their own. Results that `continue_run` is given for
    `external_execution` are guarded in their places. Raises `ValueError` if it, or the agent that it is a
    copy of, has another guard. Without `guard`: see `Adapter`.
    """
    hooks = (each for each in agent.tool_hooks or () if getattr(each, "__module__", None) == __name__)
    known = [each.adapter for each in hooks]
    adapter = adapter_for(guard, known)
    if known:
        return agent  # a tool's name must be there once
    agent.tool_hooks = [_hook(adapter), *(agent.tool_hooks or [])]
    agent.tools = _with_reading_tools(agent.tools, [_reading_tool(tool) for tool in adapter.reading_tools])
    kind = type(agent)  # agno makes copies by the class of an agent
    agent.__class__ = type(kind.__name__, (_Continuing, kind), {"overspill": adapter})
    return agent


def _with_reading_tools(tools: Any, reading: list[Function]) -> Any:
    """Return the tools with those that read, as a list, or as a function that makes one for each run."""
    if not callable(tools) or isinstance(tools, Function | Toolkit):
        return [*(tools or []), *reading]

    @functools.wraps(tools)  # agno asks what its arguments are
    def with_reading(*args: Any, **named: Any) -> Any:
        listed = tools(*args, **named)
        return _both(listed, reading) if inspect.isawaitable(listed) else [*(listed or []), *reading]

    return with_reading


async def _both(making: Awaitable[Any], reading: list[Function]) -> list[Any]:
    return [*(await making or []), *reading]


def _hook(adapter: Adapter) -> Callable[..., Any]:
    """Return the outermost hook of every call. agno calls it in synchronous and asynchronous runs alike."""

    def overspill(
        function_name: str, func: Callable[..., Any], args: dict[str, Any], run_context: RunContext | None
    ) -> Any:
        session = run_context.session_id if run_context else None
        with (call := adapter.call(function_name, session=session, passing=_CONTROL_FLOW)):
            result = func(**args)
        if inspect.isawaitable(result):
            return _awaited(result, call)
        if isinstance(result, Iterator):
            return _streamed(result, call)
        return _with_metadata(call.process_sync(result, is_printed=True))

    hook: Any = overspill
    hook.adapter = adapter
    hook.__signature__ = inspect.signature(overspill)  # agno asks for it ten times a call
    return overspill


async def _awaited(running: Awaitable[Any], call: ToolCall) -> Any:
    async with call:
        result = await running
    if isinstance(result, AsyncIterator):
        return _streamed_async(result, call)
    if isinstance(result, Iterator):
        return _streamed(result, call)
    return _with_metadata(await call.process(result, is_printed=True))


def _streamed(items: Iterator[Any], call: ToolCall) -> Iterator[Any]:
    """Yield events as they come, and at the end the texts, guarded as one: agno joins them for the model."""
    pieces: list[Any] = []
    with call.raising():
        for item in items:
            if isinstance(item, BaseRunOutputEvent):
                yield item
            else:
                pieces.append(item)
    yield from _shown(pieces, call.process_sync("".join(map(str, pieces))))


async def _streamed_async(items: AsyncIterator[Any], call: ToolCall) -> AsyncIterator[Any]:
    """Do the same as `_streamed`, for asynchronous code."""
    pieces: list[Any] = []
    async with call.raising():
        async for item in items:
            if isinstance(item, BaseRunOutputEvent):
                yield item
            else:
                pieces.append(item)
    for each in _shown(pieces, await call.process("".join(map(str, pieces)))):
        yield each


def _shown(pieces: list[Any], guarded: Guarded) -> list[Any]:
    return pieces if guarded.notice is None else [guarded.value]


class _Continuing:
    """A mixin for a class of agents. Guards the results that come from outside when a run goes on."""

    overspill: Adapter

    def continue_run(self, run_response: Any = None, **named: Any) -> Any:
        """Guard these results, and go on with the run."""
        for execution, requirement, call in self._brought(run_response, **named):
            _bring(execution, requirement, call.process_sync(execution.result))
        return super().continue_run(run_response, **named)  # type: ignore[misc]

    def acontinue_run(self, run_response: Any = None, **named: Any) -> Any:
        """Do the same as `continue_run`, for asynchronous code: return a coroutine or an iterator."""
        running = super().acontinue_run(run_response, **named)  # type: ignore[misc]
        guarding = functools.partial(self._guard_brought, run_response, **named)
        return _after(guarding, running) if inspect.isawaitable(running) else _events(guarding, running)

    async def _guard_brought(self, run_response: Any, **named: Any) -> None:
        for execution, requirement, call in self._brought(run_response, **named):
            _bring(execution, requirement, await call.process(execution.result))

    def _brought(
        self,
        run_response: Any,
        *,
        requirements: Sequence[RunRequirement] | None = None,
        session_id: str | None = None,
        **_: Any,
    ) -> Iterator[tuple[ToolExecution, RunRequirement | None, ToolCall]]:
        """Yield the calls with such a result, what asked for each, and the call for the guard."""
        required = [
            each for each in requirements or getattr(run_response, "requirements", None) or () if each
        ]
        known = {id(each.tool_execution): each for each in required}
        found = [*(getattr(run_response, "tools", None) or ()), *(each.tool_execution for each in required)]
        session = getattr(run_response, "session_id", None) or session_id
        for each in {id(each): each for each in found if each is not None}.values():
            if each.external_execution_required and each.result is not None:
                call = self.overspill.call(each.tool_name or "", each.tool_call_id, session)
                yield each, known.get(id(each)), call


def _bring(execution: ToolExecution, requirement: RunRequirement | None, guarded: Guarded) -> None:
    """Put the guarded result into the places of the whole: agno stores both with the run."""
    execution.result = guarded.value
    if requirement is not None and requirement.external_execution_result is not None:
        requirement.external_execution_result = guarded.value


async def _after(guarding: Callable[[], Awaitable[None]], running: Awaitable[Any]) -> Any:
    await guarding()
    return await running


async def _events(guarding: Callable[[], Awaitable[None]], running: Any) -> AsyncIterator[Any]:
    async with aclosing(running):
        await guarding()
        async for event in running:
            yield event


def _reading_tool(tool: AgentTool) -> Function:
    def call(run_context: RunContext | None = None, **arguments: Any) -> str:
        session = run_context.session_id if run_context else None
        return OwnAnswer(json.dumps(tool.call(arguments, session=session), ensure_ascii=False))

    return Function(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        entrypoint=call,
        skip_entrypoint_processing=True,
    )


def _with_metadata(guarded: Guarded) -> Any:
    """Return the guarded result, with the guard's metadata where agno keeps that of tools."""
    value = guarded.value
    if guarded.notice is None:
        return value
    if isinstance(value, ToolResult):
        return value.model_copy(update={"metadata": {**(value.metadata or {}), METADATA: guarded.metadata}})
    return ToolResult(
        content=value if isinstance(value, str) else str(value), metadata={METADATA: guarded.metadata}
    )
