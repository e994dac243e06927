"""agno's agent and its function loop, with a model that says what the script says."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from agno.agent import Agent
from agno.media import Image
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.function import ToolResult
from overspill.integrations.agno import guard_agent

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


@dataclass
class Script(Model):
    """Makes the calls of the turns, and remembers which tools it was offered."""

    id: str = "script"
    turns: Sequence[Sequence[Call]] = ()
    offered: list[str] = field(default_factory=list)

    def _answer(self, messages: Any, tools: Any) -> ModelResponse:
        self.offered[:] = [each["function"]["name"] for each in tools or ()]
        made = sum(message.role == "assistant" for message in messages)
        calls = self.turns[made] if made < len(self.turns) else ()
        if not calls:
            return ModelResponse(role="assistant", content="done")
        return ModelResponse(role="assistant", tool_calls=[_call(call) for call in calls])

    def invoke(self, messages: Any, *, tools: Any = None, **_: Any) -> ModelResponse:
        return self._answer(messages, tools)

    async def ainvoke(self, messages: Any, *, tools: Any = None, **_: Any) -> ModelResponse:
        return self._answer(messages, tools)

    def invoke_stream(self, messages: Any, *, tools: Any = None, **_: Any) -> Iterator[ModelResponse]:
        yield self._answer(messages, tools)

    async def ainvoke_stream(
        self, messages: Any, *, tools: Any = None, **_: Any
    ) -> AsyncIterator[ModelResponse]:
        yield self._answer(messages, tools)

    def _parse_provider_response(self, response: Any, **_: Any) -> ModelResponse:
        found: ModelResponse = response
        return found

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        found: ModelResponse = response
        return found


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


def picture(count: int) -> ToolResult:
    """Return lines and a picture."""
    return ToolResult(content=lines(count), images=[Image(content=PNG, mime_type="image/png")])


class Agno:
    page = "agno.md"
    ways: ClassVar = ("sync", "async", "stream")
    limits: ClassVar = {
        "programs_read_the_status_beside_the_notice": "agno drops the metadata of a ToolResult on its"
        " way into the conversation",
        "code_that_calls_a_tool_gets_the_whole": "agno has no code that calls an agent's tools",
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
        script = Script(turns=turns)
        agent = Agent(model=script, tools=list(tools), telemetry=False)
        if guard is not None:
            agent = guard_agent(agent, guard)
        found = results(agent, way, session)
        return Run(script.offered, found)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": Script(turns=turns), "tools": list(tools)}
            exec(example, names)
            runs.append(Run([], results(names["agent"], "sync", session)))
        return runs


def results(agent: Agent, way: str, session: str) -> dict[str, Result]:
    """Run the agent; return the results that its messages have."""
    if way == "sync":
        run: Any = agent.run("go", session_id=session)
    elif way == "async":
        run = asyncio.run(agent.arun("go", session_id=session))
    else:
        *_, run = agent.run("go", session_id=session, stream=True, yield_run_output=True)
    pictures = sum(len(message.images or ()) for message in run.messages)
    found = [message for message in run.messages if message.role == "tool"]
    return {each.tool_call_id: result(each, pictures) for each in found}


def result(message: Any, pictures: int) -> Result:
    return Result(text=str(message.content), is_error=bool(message.tool_call_error), images=pictures)


harness = Agno()
