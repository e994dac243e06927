"""AutoGen: one line that guards the tools and workbenches of an agent.

agent = AssistantAgent("desk", model_client, workbench=guard_tools(tools))
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)
from pydantic import BaseModel, ConfigDict

from overspill.guard.call_context import begin, calling, end, minted
from overspill.integrations.adapter import adapter_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import Adapter


def guard_tools(tools: Iterable[Any], guard: Guard | None = None) -> list[Workbench]:
    """Return workbenches with these tools guarded, and one with `inspect_output` and `list_captures`.

    `tools` are functions, AutoGen's own tools, and workbenches, such as those of MCP servers. Those returned
    start and stop with the ones given. A function with the name of a reading tool keeps it. AutoGen tells
    tools no session: captures have the guard's. Raises `ValueError` if one has another guard. Without
    `guard`: see `Adapter`.
    """
    tools = list(tools)
    adapter = adapter_for(guard, [each.overspill for each in tools if isinstance(each, _GUARDED)])
    functions: list[BaseTool[Any, Any]] = []
    others: list[BaseTool[Any, Any]] = []
    benches: list[Workbench] = []
    for each in tools:
        if isinstance(each, Workbench):
            benches.append(each)
        elif isinstance(each, FunctionTool) or not isinstance(each, BaseTool):
            functions.append(_guarded_function(each, adapter))
        else:
            others.append(each)
    if others:
        benches.append(StaticStreamWorkbench(others))
    guarded = [_guarded_workbench(each, adapter) for each in benches]
    names_taken = {each.name for each in (*functions, *others)}
    if not any(isinstance(each, _ReadingWorkbench) for each in benches):
        guarded.append(_ReadingWorkbench(adapter, names_taken))
    return [_Functions(functions, adapter), *guarded]


def _guarded_function(tool: Any, adapter: Adapter) -> FunctionTool:
    """Return a guarded copy of a function's tool, whose results are still data."""
    if isinstance(tool, _Guarding):
        return tool
    kind: Any = type("FunctionTool", (_Guarding, FunctionTool), {"overspill": adapter})
    copied: FunctionTool = kind.__new__(kind)
    original = tool if isinstance(tool, FunctionTool) else FunctionTool(tool, description=tool.__doc__ or "")
    vars(copied).update(vars(original))
    return copied


class _Guarding:
    """A mixin for the class of a function's tool. Guards its results."""

    overspill: Adapter

    async def run_json(self, args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        """Run the tool, and guard what it returns or raises."""
        async with (call := self.overspill.call(self.name, call_id)):  # type: ignore[attr-defined]
            result = await super().run_json(args, cancellation_token, call_id=call_id)  # type: ignore[misc]
        return (await call.process(result, is_printed=True)).value


class _Functions(StaticStreamWorkbench):
    """Functions that are guarded."""

    def __init__(self, functions: list[BaseTool[Any, Any]], adapter: Adapter) -> None:
        super().__init__(functions)
        self.overspill = adapter


def _guarded_workbench(bench: Workbench, adapter: Adapter) -> Workbench:
    """Return one of the same class, which AutoGen asks for, and with the same state: it may be running."""
    if isinstance(bench, _GuardingWorkbench | _Functions | _ReadingWorkbench):
        return bench
    kind = type(bench)
    before = _GuardingStream if isinstance(bench, StaticStreamWorkbench) else _GuardingWorkbench
    names = {"overspill": adapter, "_given": bench}  # it lives as long: some stop when they are deleted
    guarding: Any = type(kind.__name__, (before, kind), names)
    guarded: Workbench = guarding.__new__(guarding)
    guarded.__dict__ = bench.__dict__
    return guarded


class _GuardingWorkbench:
    """A mixin for a class of workbenches. Guards the results of their tools."""

    overspill: Adapter

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Call a tool, and guard its result, which may say that it is an error."""
        known = call_id or minted()
        with calling(known):
            result = await super().call_tool(name, arguments, cancellation_token, call_id)  # type: ignore[misc]
        return await self._guarded_result(result, known)

    async def _guarded_result(self, result: ToolResult, call_id: str) -> ToolResult:
        content = _content(result)
        guarded = await self.overspill.call(result.name, call_id).process(content)
        return _with_texts(result, guarded)


class _GuardingStream(_GuardingWorkbench):
    """A mixin for a class of workbenches whose tools send events while they run."""

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> AsyncIterator[Any]:
        """Pass the events on, and guard the result."""
        known = call_id or minted()
        begin(known)
        try:
            events = super().call_tool_stream(name, arguments, cancellation_token, call_id)  # type: ignore[misc]
            async for event in events:
                yield await self._guarded_result(event, known) if isinstance(event, ToolResult) else event
        finally:
            end()


def _content(result: ToolResult) -> Any:
    """Return what the guard looks at: a text, or blocks in a form that it knows."""
    parts = result.result
    if len(parts) == 1 and isinstance(parts[0], TextResultContent):
        return parts[0].content
    return [
        {"type": "text", "text": each.content}
        if isinstance(each, TextResultContent)
        else {"type": "image", "data": ""}
        for each in parts
    ]


def _with_texts(result: ToolResult, guarded: Guarded) -> ToolResult:
    """Return the result with the guarded texts in the places of its own."""
    if guarded.notice is None:
        return result
    shown = guarded.value
    texts = [shown] if isinstance(shown, str) else [each.get("text") for each in shown]
    parts = [
        each if text is None else TextResultContent(content=text)
        for each, text in zip(result.result, texts, strict=True)
    ]
    return result.model_copy(update={"result": parts})


class _Arguments(BaseModel):
    """Any arguments: the tool itself is lenient, and says what is wrong."""

    model_config = ConfigDict(extra="allow")


class _ReadingTool(BaseTool[_Arguments, dict[str, Any]]):
    """A reading tool as AutoGen's own kind."""

    def __init__(self, tool: AgentTool) -> None:
        super().__init__(_Arguments, dict, tool.name, tool.description)
        self._tool = tool

    @property
    def schema(self) -> ToolSchema:
        """The schema of the tool, for the model."""
        parameters: Any = dict(self._tool.parameters)
        return ToolSchema(name=self.name, description=self.description, parameters=parameters)

    def return_value_as_string(self, value: Any) -> str:
        """Return the answer as the model reads it."""
        return json.dumps(value, ensure_ascii=False)

    async def run(self, args: _Arguments, cancellation_token: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer a call."""
        return await self._tool.acall(args.model_dump())


class _ReadingWorkbench(StaticWorkbench):
    """The reading tools, except those with `names_taken`."""

    def __init__(self, adapter: Adapter, names_taken: set[str]) -> None:
        super().__init__(
            [_ReadingTool(tool) for tool in adapter.reading_tools if tool.name not in names_taken]
        )
        self.overspill = adapter


_GUARDED: Final = (_Guarding, _GuardingWorkbench, _Functions, _ReadingWorkbench)
