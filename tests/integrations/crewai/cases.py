"""CrewAI's own: shared agents, copies of crews, tasks with tools of their own, agents without the line."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard, SyncClient
from pydantic import BaseModel

from tests.integrations.crewai.harness import ROLE, Script, scripted, task
from tests.integrations.kit.harness import Call
from tests.integrations.kit.tools import lines

# After the harness, which tells CrewAI first not to report runs.
from crewai import Agent, Crew, Process, Task  # isort: skip
from crewai.hooks.tool_hooks import clear_after_tool_call_hooks  # isort: skip
from crewai.tools import BaseTool, tool  # isort: skip
from overspill.integrations.crewai import guard_agent, guard_crew  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = [[Call("lines", {"count": 20_000}, "call_1")]]
OFFERED = ["lines", "inspect_output", "list_captures"]


class Talker(Script):
    def call(self, *_: Any, **__: Any) -> str:
        return "word " * 40_000


class Written(BaseModel):
    """Tools as CrewAI's agents hold them."""

    tools: list[BaseTool]


@pytest.fixture
def guard() -> Iterator[Guard]:
    with SyncClient(os.environ["OVERSPILL_URL"], session=f"kit-{uuid.uuid4()}") as client:
        yield Guard(client, spool=False)


def test_an_agent_of_two_crews_has_each_reading_tool_once(guard: Guard) -> None:
    script = scripted(LONG)
    agent = guard_agent(Agent(llm=script, tools=[tool(lines)], **ROLE), guard)
    guard_crew(Crew(agents=[agent], tasks=[task(agent)]), guard)
    guard_crew(Crew(agents=[agent], tasks=[task(agent)]), guard).kickoff()

    assert script._offered == OFFERED
    assert script._told["call_1"].text.count("[overspill]") == 1


def test_a_task_with_tools_of_its_own_is_guarded(guard: Guard) -> None:
    script = scripted(LONG)
    agent = Agent(llm=script, **ROLE)
    own = Task(description="go", expected_output="done", agent=agent, tools=[tool(lines)])
    guard_crew(Crew(agents=[agent], tasks=[own]), guard).kickoff()

    assert script._offered == OFFERED
    assert "[overspill]" in script._told["call_1"].text


def test_copies_of_a_crew_are_guarded(guard: Guard) -> None:
    script = scripted(LONG)
    agent = Agent(llm=script, tools=[tool(lines)], **ROLE)
    guard_crew(Crew(agents=[agent], tasks=[task(agent)]), guard).kickoff_for_each([{"n": "1"}])

    assert "[overspill]" in script._told["call_1"].text


def test_an_agent_without_the_line_stays_as_it_is(guard: Guard) -> None:
    script = scripted(LONG)
    guard_agent(Agent(llm=scripted([]), **ROLE), guard)
    Agent(llm=script, tools=[tool(lines)], **ROLE).kickoff("go")

    assert script._offered == ["lines"]
    assert script._told["call_1"].text == lines(20_000)


def test_a_manager_of_the_crew_is_guarded_and_can_read(guard: Guard) -> None:
    asks = {"task": "t", "context": "c", "coworker": ROLE["role"]}
    script = scripted([[Call("delegate_work_to_coworker", asks, "call_1")]])
    worker = Agent(llm=Talker(model="talker"), **ROLE)
    manager = Agent(llm=script, **ROLE | {"role": "manager"})
    job = Task(description="go", expected_output="done")
    crew = Crew(agents=[worker], tasks=[job], process=Process.hierarchical, manager_agent=manager)
    guard_crew(crew, guard).kickoff()

    assert "inspect_output" in script._offered
    assert "[overspill]" in script._told["call_1"].text


def restored(agent: Agent) -> list[BaseTool]:
    """Return the agent's reading tools as a process that loads a checkpoint has them."""
    clear_after_tool_call_hooks()
    written = [each.model_dump(mode="json") for each in agent.tools]
    return Written.model_validate({"tools": written}).tools


def test_an_agent_from_a_checkpoint_is_guarded_and_reads() -> None:
    script = scripted([[Call("lines", {"count": 20_000}, "call_1")], [Call("list_captures", {}, "call_2")]])
    tools = restored(guard_agent(Agent(llm=script, **ROLE)))
    Agent(llm=script, tools=[tool(lines), *tools], **ROLE).kickoff("go")

    assert "[overspill]" in script._told["call_1"].text
    assert '"captures"' in script._told["call_2"].text


def test_a_crew_from_a_checkpoint_takes_the_guard_that_it_is_given(guard: Guard) -> None:
    script = scripted([[Call("lines", {"count": 20_000}, "call_1")]])
    agent = Agent(llm=script, **ROLE)
    agent.tools = [tool(lines), *restored(guard_agent(agent))]
    guard_crew(Crew(agents=[agent], tasks=[task(agent)]), guard).kickoff()

    assert script._offered == OFFERED
    assert [name for name, _ in guard.stats] == ["lines"]


def test_crews_of_two_guards_share_no_agent(guard: Guard) -> None:
    agent = Agent(llm=scripted(LONG), tools=[tool(lines)], **ROLE)
    guard_crew(Crew(agents=[agent], tasks=[task(agent)]), guard)
    crew = Crew(agents=[agent], tasks=[task(agent)])
    with pytest.raises(ValueError, match="another guard has this agent"):
        guard_crew(crew, Guard(spool=False))
