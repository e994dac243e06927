"""Haystack's own agent, with a chat generator that says what the script says."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ImageContent, TextContent, ToolCall
from haystack.tools import create_tool_from_function
from overspill.integrations.haystack import SESSION, guard_agent

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


@component
class Script:
    """A generator that makes the calls of the turns, and remembers which tools it was offered."""

    def __init__(self, turns: Sequence[Sequence[Call]] = ()) -> None:
        self.turns = turns
        self.offered: list[str] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, **_: Any) -> dict[str, Any]:
        self.offered[:] = [tool.name for tool in tools or ()]
        turn = sum(message.is_from("assistant") for message in messages)
        if turn >= len(self.turns):
            return {"replies": [ChatMessage.from_assistant("done")]}
        calls = [tool_call(call) for call in self.turns[turn]]
        return {"replies": [ChatMessage.from_assistant(tool_calls=calls)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None, **_: Any) -> dict[str, Any]:
        return self.run(messages, tools)


def tool_call(call: Call) -> ToolCall:
    """Return one call of the model; a program is code that makes the call itself."""
    if not call.is_program:
        return ToolCall(call.tool, dict(call.arguments), call.id)
    return ToolCall("run_code", {"tool_name": call.tool, "arguments": dict(call.arguments)}, call.id)


@dataclass
class Code:
    """Keeps what the code got."""

    tools: Sequence[Any]
    seen: list[Any] = field(default_factory=list)

    def run_code(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Run code that calls a tool."""
        tool = next(each for each in self.tools if each.name == tool_name)
        self.seen.append(tool.invoke(**arguments))
        return "done"


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [TextContent(lines(count)), ImageContent(base64_image=png(), mime_type="image/png")]


class Haystack:
    page = "haystack.md"
    ways: ClassVar = ("sync", "async")
    limits: ClassVar[dict[str, str]] = {}
    names_calls = True
    picture = staticmethod(picture)

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        made = [_tool(each) for each in tools]
        script, code = Script(turns), Code(made)
        agent = Agent(chat_generator=script, tools=[*made, create_tool_from_function(code.run_code)])
        found = results(agent if guard is None else guard_agent(agent, guard), way, session)
        if code.seen:
            found |= {call.id: Result(code.seen[-1]) for call in turns[0] if call.is_program}
        return Run(script.offered, found)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            made = [create_tool_from_function(each) for each in tools]
            names: dict[str, Any] = {"generator": Script(turns), "tools": made}
            exec(example, names)
            runs.append(Run([], results(names["agent"], "sync", session)))
        return runs


def _tool(function: Any) -> Any:
    """Make a tool. Haystack turns blocks into text unless a tool says that it returns some."""
    shown = {"raw_result": True} if function is picture else None
    return create_tool_from_function(function, outputs_to_string=shown)


def results(agent: Any, way: str, session: str) -> dict[str, Result]:
    """Run the agent; return the results that its conversation has."""
    given: Any = {"messages": [ChatMessage.from_user("go")], "hook_context": {SESSION: session}}
    found = agent.run(**given) if way == "sync" else asyncio.run(agent.run_async(**given))
    messages = [each for each in found["messages"] if each.tool_call_result is not None]
    return {each.tool_call_result.origin.id: result(each) for each in messages}


def result(message: Any) -> Result:
    found = message.tool_call_result
    parts = [TextContent(found.result)] if isinstance(found.result, str) else found.result
    return Result(
        text="".join(part.text for part in parts if isinstance(part, TextContent)),
        is_error=found.error,
        images=sum(isinstance(part, ImageContent) for part in parts),
        metadata=message.meta.get("overspill"),
    )


harness = Haystack()
