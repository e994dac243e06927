"""Cases for Microsoft's framework alone: ends of a run, tools of other providers, and agents as tools."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    ContextProvider,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareTermination,
)
from overspill import Guard, SyncClient
from overspill.integrations.agent_framework import OverspillProvider

from tests.integrations.agent_framework.harness import Script, results, tool_of
from tests.integrations.kit import tools
from tests.integrations.kit.harness import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]
LINES = [[Call("lines", {"count": 20_000}, "call_1")]]


@pytest.fixture
def session() -> str:
    return f"maf-{uuid.uuid4()}"


@pytest.fixture
def guard(session: str) -> Iterator[Guard]:
    with SyncClient(URL, session=session) as client, Guard(client, spool=False) as made:
        yield made


class Stops(FunctionMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()
        context.result = "stopped"
        raise MiddlewareTermination


class Lines(ContextProvider):
    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_tools(self.source_id, [tool_of(tools.lines)])


def test_what_ends_a_run_ends_it(guard: Guard, session: str) -> None:
    agent = Agent(
        client=Script([*LINES, *LINES]),
        tools=[tool_of(tools.lines)],
        middleware=[Stops()],
        context_providers=[OverspillProvider(guard)],
    )
    shown = asyncio.run(results(agent, "async", session))

    assert shown["call_1"].text == "stopped"


@pytest.mark.parametrize("is_first", [True, False])
def test_the_tools_of_another_provider_are_guarded(guard: Guard, session: str, is_first: bool) -> None:
    providers = [OverspillProvider(guard), Lines("lines")]
    agent = Agent(client=Script(LINES), context_providers=providers if is_first else providers[::-1])
    shown = asyncio.run(results(agent, "async", session))

    assert "[overspill]" in shown["call_1"].text


def test_an_agent_as_a_tool_has_its_own_provider(guard: Guard, session: str) -> None:
    child = Agent(
        client=Script(LINES),
        name="child",
        tools=[tool_of(tools.lines)],
        context_providers=[OverspillProvider(guard)],
    )
    asks = Script([[Call("child", {"task": "go"}, "call_1")]])
    parent = Agent(client=asks, tools=[child.as_tool()], context_providers=[OverspillProvider(guard)])
    asyncio.run(results(parent, "async", session))
    assert isinstance(guard.client, SyncClient)

    assert guard.client.list(tool="lines", call_id="call_1").captures


def test_the_result_of_a_call_that_was_made_elsewhere_is_guarded(guard: Guard, session: str) -> None:
    script = Script(LINES)
    declared = FunctionTool(name="lines", description="Return lines.", input_model={"type": "object"})
    agent = Agent(client=script, tools=[declared], context_providers=[OverspillProvider(guard)])
    brought = Content.from_function_result("call_1", result=tools.lines(20_000))

    async def both() -> str:
        known = AgentSession(session_id=session)
        await agent.run("go", session=known)
        await agent.run(Message(role="tool", contents=[brought]), session=known)
        return json.dumps(known.to_dict())

    kept = asyncio.run(both())
    assert isinstance(guard.client, SyncClient)

    assert "[overspill] Output of the tool (call_1" in kept
    assert len(kept) < 10_000
    assert guard.client.content("call:call_1").decode() == tools.lines(20_000) == brought.result


def test_a_tool_with_the_name_of_a_reading_tool_stays(guard: Guard, session: str) -> None:
    def inspect_output() -> str:
        return tools.lines(20_000)

    script = Script([[Call("inspect_output", {}, "call_1")]])
    agent = Agent(
        client=script, tools=[tool_of(inspect_output)], context_providers=[OverspillProvider(guard)]
    )
    shown = asyncio.run(results(agent, "async", session))

    assert "[overspill]" in shown["call_1"].text
    assert script.offered == ["inspect_output", "list_captures"]
