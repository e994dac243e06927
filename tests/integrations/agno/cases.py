"""What only agno has: its line may come twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agno.agent import Agent
from overspill.integrations.agno import guard_agent

from tests.integrations.agno.harness import Script, results
from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call

if TYPE_CHECKING:
    from overspill import Guard

__all__ = ["guard", "session"]


def test_guarding_twice_guards_once_and_a_copy_stays_guarded(guard: Guard, session: str) -> None:
    script = Script(turns=[[Call("lines", {"count": 20_000}, "call_1")]])
    agent = guard_agent(Agent(model=script, tools=[tools.lines], telemetry=False), guard)
    again = guard_agent(agent, guard).deep_copy()
    found = results(again, "sync", session)

    assert found["call_1"].text.count("[overspill]") == 1
    assert sorted(again.model.offered) == ["inspect_output", "lines", "list_captures"]
