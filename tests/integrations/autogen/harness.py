"""AutoGen's assistant agent, with functions or a workbench, and a model that says what the script says."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, ClassVar

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall, Image
from autogen_core.models import CreateResult, RequestUsage
from autogen_core.tools import (
    FunctionTool,
    ImageResultContent,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolResult,
)
from autogen_ext.models.replay import ReplayChatCompletionClient
from overspill.integrations.autogen import guard_tools

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

INFO: Any = {
    "function_calling": True,
    "vision": True,
    "json_output": False,
    "structured_output": False,
    "family": "script",
}


class Script(ReplayChatCompletionClient):
    """Makes the calls of the turns, and remembers which tools it was offered."""

    def __init__(self, turns: Sequence[Sequence[Call]]) -> None:
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        answers = [
            CreateResult(
                finish_reason="function_calls",
                content=[FunctionCall(call.id, json.dumps(dict(call.arguments)), call.tool) for call in turn],
                usage=usage,
                cached=False,
            )
            for turn in turns
        ]
        super().__init__([*answers, "done"], INFO)
        self.offered: list[str] = []

    async def create(self, messages: Any, *, tools: Any = (), **named: Any) -> CreateResult:
        self.offered[:] = [each["name"] for each in tools] or self.offered
        return await super().create(messages, tools=tools, **named)


class DataTool(FunctionTool):
    """A tool in a workbench, which returns texts alone: data are JSON, as MCP servers send them."""

    def return_value_as_string(self, value: Any) -> str:
        return json.dumps(value) if isinstance(value, dict) else super().return_value_as_string(value)


class Pictures(StaticWorkbench):
    """A workbench whose results have a picture: AutoGen's functions return texts."""

    async def call_tool(self, name: str, *args: Any, **named: Any) -> ToolResult:
        found = await super().call_tool(name, *args, **named)
        picture = ImageResultContent(content=Image.from_base64(png()))
        return found.model_copy(update={"result": [*found.result, picture]})


def picture(count: int) -> str:
    """Return lines; `Pictures` adds a picture."""
    return lines(count)


class AutoGen:
    page = "autogen.md"
    ways: ClassVar = ("functions", "workbench", "stream")
    limits: ClassVar = {
        "programs_read_the_status_beside_the_notice": "AutoGen has no place for it beside a result",
        "code_that_calls_a_tool_gets_the_whole": "AutoGen has no code that calls an agent's tools",
    }
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
        script = Script(turns)
        given = benches(way, tools)
        if guard is not None:
            agent = assistant(script, workbench=guard_tools(given, guard))
        elif way == "functions" and picture not in tools:
            agent = assistant(script, tools=given)
        else:
            agent = assistant(script, workbench=given)
        return Run(script.offered, asyncio.run(results(agent)))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model_client": Script(turns), "tools": list(tools)}
            exec(example, names)
            runs.append(Run([], asyncio.run(results(names["agent"]))))
        return runs


def benches(way: str, tools: Sequence[Any]) -> list[Any]:
    """Return the tools as the way has them."""
    made: Any = [DataTool(each, description=each.__doc__ or "") for each in tools]
    if picture in tools:
        return [Pictures(made)]
    if way == "functions":
        return list(tools)
    return [(StaticStreamWorkbench if way == "stream" else StaticWorkbench)(made)]


def assistant(script: Script, **named: Any) -> AssistantAgent:
    return AssistantAgent("desk", script, max_tool_iterations=5, **named)


async def results(agent: AssistantAgent) -> dict[str, Result]:
    """Run the agent; return the results that its events have."""
    found: dict[str, Result] = {}
    async for event in agent.run_stream(task="go"):
        if isinstance(event, ToolCallExecutionEvent):
            found |= {each.call_id: result(each) for each in event.content}
    return found


def result(each: Any) -> Result:
    """AutoGen writes pictures into the text."""
    return Result(text=each.content, is_error=bool(each.is_error), images=each.content.count("[Image: "))


harness = AutoGen()
