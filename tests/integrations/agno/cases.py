"""Cases for agno alone: its line may come twice, tools are made for each run, generators stream events."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from agno.agent import Agent
from agno.run.agent import CustomEvent
from agno.team import Team
from agno.tools.function import Function
from overspill import Guard, SyncClient
from overspill.integrations.agno import guard_agent

from tests.integrations.agno.harness import Script, results
from tests.integrations.kit import tools
from tests.integrations.kit.cases import handle_in, stored
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call

__all__ = ["guard", "session"]


def test_guarding_twice_guards_once_and_a_copy_stays_guarded(guard: Guard, session: str) -> None:
    script = Script(turns=[[Call("lines", {"count": 20_000}, "call_1")]])
    agent = guard_agent(Agent(model=script, tools=[tools.lines], telemetry=False), guard)
    again = guard_agent(agent, guard).deep_copy()
    found = results(again, "sync", session)

    assert found["call_1"].text.count("[overspill]") == 1
    assert sorted(again.model.offered) == ["inspect_output", "lines", "list_captures"]


def agent_of(tool: Any, name: str, guard: Guard) -> Agent:
    script = Script(turns=[[Call(name, {}, "call_1")]])
    return guard_agent(Agent(model=script, tools=tool, telemetry=False), guard)


def long() -> str:
    """Return lines."""
    return tools.lines(20_000)


async def made_later(agent: Any) -> list[Any]:
    assert agent.model is not None
    return [long]


@pytest.mark.parametrize(("way", "making"), [("sync", lambda: [long]), ("async", made_later)])
def test_tools_that_are_made_for_each_run_are_guarded(
    guard: Guard, session: str, way: str, making: Any
) -> None:
    agent = agent_of(making, "long", guard)
    found = results(agent, way, session)

    assert "[overspill]" in found["call_1"].text
    assert isinstance(agent.model, Script)
    assert sorted(agent.model.offered) == ["inspect_output", "list_captures", "long"]


@dataclass
class Step(CustomEvent):
    """An event of a tool's own."""


def continued(agent: Any, run: Any, way: str, **named: Any) -> Any:
    """Go on with a paused run; return it when it has ended."""

    async def last_event() -> Any:
        events = agent.acontinue_run(run, stream=True, yield_run_output=True, **named)
        return [event async for event in events][-1]

    if way == "sync":
        return agent.continue_run(run, **named)
    return asyncio.run(agent.acontinue_run(run, **named) if way == "async" else last_event())


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize("kind", [Agent, Team])
def test_a_result_that_the_host_hands_back_is_guarded(
    guard: Guard, session: str, way: str, kind: type[Any]
) -> None:
    far = Function(name="far", description="Return lines.", external_execution=True)
    model = Script(turns=[[Call("far", {}, "call_1")]])
    members: dict[str, Any] = {"members": []} if kind is Team else {}
    agent = guard_agent(kind(model=model, tools=[far], telemetry=False, **members), guard).deep_copy()
    paused = agent.run("go", session_id=session)
    paused.requirements[0].set_external_execution_result(tools.lines(20_000))
    ended = continued(agent, paused, way, requirements=paused.requirements)
    shown = next(str(message.content) for message in ended.messages if message.role == "tool")
    assert isinstance(guard.client, SyncClient)

    assert shown.startswith("[overspill] Output of far (call_1")
    assert stored(guard, handle_in(shown)).decode() == tools.lines(20_000)
    assert guard.client.list(session=session, call_id="call_1").captures
    assert len(json.dumps(ended.to_dict())) < 20_000


def streams() -> Any:
    """Stream lines."""
    yield Step()
    yield from tools.lines(20_000).splitlines(keepends=True)
    yield Step()


async def streams_later() -> Any:
    """Stream lines."""
    for each in streams():
        yield each


@pytest.mark.parametrize(("tool", "way"), [(streams, "sync"), (streams, "async"), (streams_later, "async")])
def test_the_texts_of_a_generator_are_guarded_as_one(guard: Guard, session: str, tool: Any, way: str) -> None:
    found = results(agent_of([tool], tool.__name__, guard), way, session)["call_1"].text

    assert found.count("[overspill]") == 1
    assert stored(guard, handle_in(found)).decode() == tools.lines(20_000)


def test_events_of_a_generator_pass_before_it_ends(guard: Guard) -> None:
    seen: list[bool] = []
    taken = asyncio.Event()

    async def waits() -> Any:
        """Wait until an event has passed."""
        yield Step()
        async with asyncio.timeout(60):
            await taken.wait()
        yield tools.lines(20_000)

    async def run() -> None:
        async for event in agent_of([waits], "waits", guard).arun("go", stream=True, stream_events=True):
            if isinstance(event, Step):
                seen.append(taken.is_set())
                taken.set()

    asyncio.run(run())

    assert seen == [False]


def with_the_hooks_of(agent: Agent) -> Agent:
    return Agent(tool_hooks=agent.tool_hooks)


@pytest.mark.parametrize("other_of", [lambda it: it, Agent.deep_copy, with_the_hooks_of])
def test_an_agent_of_another_guard_is_refused(guard: Guard, other_of: Any) -> None:
    agent = agent_of([long], "long", guard)
    with pytest.raises(ValueError, match="another guard has this agent"):
        guard_agent(other_of(agent), Guard(spool=False))

    assert guard_agent(agent) is agent
