"""What only ADK has: sub-agents, tools that are agents, and callbacks of agents."""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.tools.agent_tool import AgentTool
from overspill import Guard, SyncClient
from overspill.integrations.google_adk import OverspillPlugin

from tests.integrations.google_adk.harness import results, script_of
from tests.integrations.kit import tools
from tests.integrations.kit.harness import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]
MANY = 20_000


@pytest.fixture
def session() -> str:
    return f"adk-{uuid.uuid4()}"


@pytest.fixture
def guard(session: str) -> Iterator[Guard]:
    with SyncClient(URL, session=session) as client, Guard(client, spool=False) as made:
        yield made


def run(agent: LlmAgent, guard: Guard, session: str) -> dict[str, Any]:
    app = App(name="kit", root_agent=agent, plugins=[OverspillPlugin(guard)])
    return asyncio.run(results(app, "async", session))


def lines_once() -> Any:
    return script_of([[Call("lines", {"count": MANY}, "call_of_child")]])


def test_an_agent_that_is_a_tool_is_guarded_and_offered_the_reading_tools(guard: Guard, session: str) -> None:
    script = lines_once()
    child = LlmAgent(name="child", model=script, tools=[tools.lines], description="reads lines")
    parent = LlmAgent(
        name="parent",
        model=script_of([[Call("child", {"request": "go"}, "call_1")]]),
        tools=[AgentTool(child)],
    )
    run(parent, guard, session)
    assert isinstance(guard.client, SyncClient)

    assert {"inspect_output", "list_captures"} <= set(script.offered)
    assert [entry.call_id for entry in guard.client.list(tool="lines", call_id="call_of_child").captures]


def test_a_sub_agent_that_takes_over_is_guarded(guard: Guard, session: str) -> None:
    script = lines_once()
    child = LlmAgent(name="child", model=script, tools=[tools.lines])
    transfer = script_of([[Call("transfer_to_agent", {"agent_name": "child"}, "call_1")]])
    parent = LlmAgent(name="parent", model=transfer, sub_agents=[child])
    shown = run(parent, guard, session)

    assert "[overspill]" in shown["call_of_child"].text


def test_a_callback_of_an_agent_keeps_the_last_word(guard: Guard, session: str) -> None:
    agent = LlmAgent(
        name="agent",
        model=lines_once(),
        tools=[tools.lines],
        before_tool_callback=lambda **_: {"result": "from a cache"},
    )

    assert run(agent, guard, session)["call_of_child"].text == "from a cache"


def test_the_type_and_the_identity_of_an_exception_stay(guard: Guard, session: str) -> None:
    raised = KeyError("x" * 100_000)

    def fail() -> None:
        """Fail."""
        raise raised

    agent = LlmAgent(name="agent", model=script_of([[Call("fail", {}, "call_1")]]), tools=[fail])
    with pytest.raises(KeyError) as caught:
        run(agent, guard, session)

    assert caught.value is raised
    assert len(str(caught.value)) < 10_000
