"""CrewAI's crew and its lone agent, with a model that says what the script says."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any, ClassVar

# CrewAI reports runs to its makers unless it is told not to, before it is imported.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_TESTING": "true",
}

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool as crew_tool
from overspill.integrations.crewai import guard_agent, guard_crew
from pydantic import PrivateAttr

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

ROLE: Any = {"role": "reader", "goal": "read", "backstory": "none"}


class Script(BaseLLM):
    """Makes the calls of the turns, and remembers which tools it was offered and what it was told."""

    _turns: Any = PrivateAttr(default=())
    _offered: list[str] = PrivateAttr(default_factory=list)
    _told: dict[str, Result] = PrivateAttr(default_factory=dict)

    def supports_function_calling(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 10_000_000  # else CrewAI rewrites a conversation that has a long result

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        self._offered[:] = [each["function"]["name"] for each in tools or ()] or self._offered
        results = [each for each in messages if each["role"] == "tool"]
        self._told |= {each["tool_call_id"]: Result(text=str(each["content"])) for each in results}
        made = sum(bool(each.get("tool_calls")) for each in messages)
        return [_call(call) for call in self._turns[made]] if made < len(self._turns) else "done"

    async def acall(self, *args: Any, **named: Any) -> Any:
        return self.call(*args, **named)


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


class CrewAI:
    page = "crewai.md"
    ways: ClassVar = ("sync", "async", "agent")
    limits: ClassVar = {
        "programs_read_the_status_beside_the_notice": "CrewAI has no place for it beside a result",
        "a_picture_stays_beside_a_long_text": "a tool's result is a text in CrewAI",
        "code_that_calls_a_tool_gets_the_whole": "CrewAI has no code that calls an agent's tools",
    }
    names_calls = False
    picture = staticmethod(lines)

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        script = scripted(turns)
        agent = Agent(llm=script, tools=[crew_tool(each) for each in tools], **ROLE)
        if way == "agent":
            if guard is not None:
                agent = guard_agent(agent, guard)
            agent.kickoff("go")
        else:
            crew = Crew(agents=[agent], tasks=[task(agent)])
            if guard is not None:
                crew = guard_crew(crew, guard)
            start(crew, way)
        return Run(script._offered, script._told)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            script = scripted(turns)
            agent = Agent(llm=script, tools=[crew_tool(each) for each in tools], **ROLE)
            names: dict[str, Any] = {"agents": [agent], "tasks": [task(agent)]}
            exec(example, names)
            start(names["crew"], "sync")
            runs.append(Run([], script._told))
        return runs


def scripted(turns: Sequence[Sequence[Call]]) -> Script:
    script = Script(model="script")
    script._turns = turns
    return script


def task(agent: Agent) -> Task:
    return Task(description="go", expected_output="done", agent=agent)


def start(crew: Crew, way: str) -> None:
    if way == "async":
        asyncio.run(crew.akickoff())
    else:
        crew.kickoff()


harness = CrewAI()
