"""LlamaIndex' function agent, alone and in a workflow, with its own scripted model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from overspill.integrations.llama_index import guard_agent

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


class Script:
    """Makes the calls of the turns, and remembers which tools it was offered."""

    def __init__(self, turns: Sequence[Sequence[Call]]) -> None:
        self.turns = turns
        self.offered: list[str] = []
        self.llm = MockFunctionCallingLLM(response_generator=self.answer)

    def answer(self, messages: Any, tools: Any = (), **_: Any) -> ChatMessage:
        self.offered[:] = [_name(tool) for tool in tools or ()]
        made = sum(message.role == "assistant" for message in messages)
        calls = self.turns[made] if made < len(self.turns) else ()
        blocks = [
            ToolCallBlock(tool_call_id=call.id, tool_name=call.tool, tool_kwargs=dict(call.arguments))
            for call in calls
        ]
        return ChatMessage(role="assistant", blocks=blocks or [TextBlock(text="done")])


def _name(tool: Any) -> str:
    name: str = tool["function"]["name"] if isinstance(tool, dict) else tool.metadata.get_name()
    return name


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [TextBlock(text=lines(count)), ImageBlock(image=PNG, image_mimetype="image/png")]


class LlamaIndex:
    page = "llama-index.md"
    ways: ClassVar = ("async", "stream", "workflow")
    limits: ClassVar = {
        "programs_read_the_status_beside_the_notice": "LlamaIndex has no place for it beside a result",
        "code_that_calls_a_tool_gets_the_whole": "LlamaIndex' code agent calls functions, not tools",
    }
    names_calls = False
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
        agent: Any = FunctionAgent(
            name="agent", description="a", tools=list(tools), llm=script.llm, streaming=way == "stream"
        )
        if way == "workflow":
            agent = AgentWorkflow(agents=[agent], root_agent="agent")
        if guard is not None:
            agent = guard_agent(agent, guard)
        return Run(script.offered, asyncio.run(results(agent)))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"llm": Script(turns).llm, "tools": list(tools)}
            exec(example, names)
            runs.append(Run([], asyncio.run(results(names["agent"]))))
        return runs


async def results(agent: Any) -> dict[str, Result]:
    """Run the agent; return the results that its events have."""
    running = agent.run("go")
    found: dict[str, Result] = {}
    async for event in running.stream_events():
        if isinstance(event, ToolCallResult):
            output = event.tool_output
            pictures = sum(isinstance(each, ImageBlock) for each in output.blocks)
            found[event.tool_id] = Result(text=output.content, is_error=output.is_error, images=pictures)
    await running
    return found


harness = LlamaIndex()
