"""LlamaIndex: one line that guards every tool of an agent or of a workflow of agents.

agent = guard_agent(FunctionAgent(tools=tools, llm=llm))
"""

from __future__ import annotations

import json
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.llms import TextBlock
from llama_index.core.tools import (
    AsyncBaseTool,
    BaseTool,
    FunctionTool,
    ToolMetadata,
    ToolOutput,
    adapt_to_async_tool,
)

from overspill.integrations.adapter import adapter_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import Adapter, ToolCall

AgentT = TypeVar("AgentT", bound=Any)


def guard_agent(agent: AgentT, guard: Guard | None = None) -> AgentT:
    """Guard the tools of an agent or of an `AgentWorkflow`, and give it `inspect_output` and `list_captures`.

    Return the same object. A tool of the agent with the name of one of these keeps it.
    `ToolOutput.raw_output` keeps what the tool returned. Tools of a `tool_retriever` are not guarded: give it
    those of `guard_tools`. LlamaIndex tells tools no id of a call and no session: captures have ids of their
    own, and the guard's session. Raises `ValueError` if an agent has another guard. Without `guard`: see
    `Adapter`.
    """
    agents = getattr(agent, "agents", {"": agent}).values()
    adapter = adapter_for(guard, [existing for each in agents for existing in _adapters(each.tools or ())])
    for each in agents:
        each.tools = _guarded_tools(each.tools or [], adapter)
    return agent


def guard_tools(tools: Sequence[Any], guard: Guard | None = None) -> list[AsyncBaseTool]:
    """Return the tools guarded, and the reading tools behind them, for other users of tools than agents.

    `tools` are functions and LlamaIndex' own tools. Raises `ValueError` if one has another guard.
    """
    return _guarded_tools(tools, adapter_for(guard, _adapters(tools)))


def _adapters(tools: Sequence[Any]) -> list[Adapter]:
    """Return the adapters of those tools that are guarded already."""
    return [each.overspill for each in tools if isinstance(each, _Guarding | _ReadingTool)]


def _guarded_tools(tools: Sequence[Any], adapter: Adapter) -> list[AsyncBaseTool]:
    """Return the tools guarded, and each reading tool unless there is a tool of its name."""
    guarded = [_guarded_tool(_tool(each), adapter) for each in tools]
    names = {tool.metadata.get_name() for tool in guarded}
    return [
        *guarded,
        *(_ReadingTool(each, adapter) for each in adapter.reading_tools if each.name not in names),
    ]


def _tool(tool: Any) -> AsyncBaseTool:
    return adapt_to_async_tool(tool if isinstance(tool, BaseTool) else FunctionTool.from_defaults(tool))


def _guarded_tool(tool: AsyncBaseTool, adapter: Adapter) -> AsyncBaseTool:
    """Return a copy of the same class: LlamaIndex asks which one it is."""
    if isinstance(tool, _Guarding | _ReadingTool):
        return tool
    kind = type(tool)
    guarding: Any = type(kind.__name__, (_Guarding, kind), {"overspill": adapter})
    guarded: AsyncBaseTool = guarding.__new__(guarding)
    vars(guarded).update(vars(tool))
    return guarded


class _Guarding:
    """A mixin for a class of tools. Guards their results."""

    overspill: Adapter

    def call(self, *args: Any, **named: Any) -> ToolOutput:
        """Run the tool, and guard what it returns or raises."""
        with (call := self._new_call()):
            output: ToolOutput = super().call(*args, **named)  # type: ignore[misc]
        return _guarded_output(output, call.process_sync(_content(output), is_printed=True))

    async def acall(self, *args: Any, **named: Any) -> ToolOutput:
        """Do the same as `call`, for asynchronous code."""
        async with (call := self._new_call()):
            output: ToolOutput = await super().acall(*args, **named)  # type: ignore[misc]
        return _guarded_output(output, await call.process(_content(output), is_printed=True))

    def _new_call(self) -> ToolCall:
        metadata: ToolMetadata = self.metadata  # type: ignore[attr-defined]
        return self.overspill.call(metadata.get_name())


def _content(output: ToolOutput) -> Any:
    """Return what the guard looks at: a text, the data that LlamaIndex wrote as a text, or known blocks."""
    raw = output.raw_output
    if len(output.blocks) == 1 and isinstance(output.blocks[0], TextBlock):
        text = output.blocks[0].text
        return raw if isinstance(raw, dict | list) and text == str(raw) else text
    return [
        {"type": "text", "text": each.text} if isinstance(each, TextBlock) else {"type": "image", "data": ""}
        for each in output.blocks
    ]


def _guarded_output(output: ToolOutput, guarded: Guarded) -> ToolOutput:
    """Return the output with the guarded texts in the places of its own."""
    if guarded.notice is None:
        return output
    shown = guarded.value
    texts = [str(shown)] if len(output.blocks) == 1 else [each.get("text") for each in shown]
    blocks = [
        each if text is None else each.model_copy(update={"text": text})
        for each, text in zip(output.blocks, texts, strict=True)
    ]
    return output.model_copy(update={"blocks": blocks})


class _Metadata(ToolMetadata):
    """A description whose schema is there already."""

    def __init__(self, tool: AgentTool) -> None:
        super().__init__(description=tool.description, name=tool.name)
        self._parameters = dict(tool.parameters)

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return self._parameters


class _ReadingTool(FunctionTool):
    """A reading tool as LlamaIndex' own kind. Its function is for agents that write code."""

    def __init__(self, tool: AgentTool, adapter: Adapter) -> None:
        super().__init__(_function(tool), _Metadata(tool))
        self._tool, self.overspill = tool, adapter

    def call(self, **arguments: Any) -> ToolOutput:
        """Answer a call."""
        return self._output(arguments, self._tool.call(arguments))

    async def acall(self, **arguments: Any) -> ToolOutput:
        """Do the same as `call`, for asynchronous code."""
        return self._output(arguments, await self._tool.acall(arguments))

    def _output(self, arguments: dict[str, Any], answer: dict[str, Any]) -> ToolOutput:
        text = json.dumps(answer, ensure_ascii=False)
        return ToolOutput(tool_name=self._tool.name, content=text, raw_input=arguments, raw_output=answer)


def _function(tool: AgentTool) -> Callable[..., Any]:
    """Return a function with the name, the arguments and the description of the tool."""
    required = tool.parameters.get("required", ())
    signature = Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=Parameter.empty if name in required else None)
            for name in tool.parameters["properties"]
        ]
    )

    def function(**arguments: Any) -> dict[str, Any]:
        return tool.call({name: value for name, value in arguments.items() if value is not None})

    made: Any = function
    made.__name__, made.__doc__, made.__signature__ = tool.name, tool.description, signature
    return function
