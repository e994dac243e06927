"""Cases for AutoGen alone: workbenches that are already guarded, and functions with names of ours."""

from __future__ import annotations

import asyncio

import pytest
from overspill import Guard
from overspill.integrations.autogen import guard_tools

from tests.integrations.autogen.harness import Script, assistant, benches, results
from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call

__all__ = ["guard", "session"]
MANY = 20_000


def test_guarding_twice_guards_once(guard: Guard) -> None:
    script = Script([[Call("lines", {"count": MANY}, "call_1"), Call("query", {"rows": 5_000}, "call_2")]])
    once = guard_tools([tools.lines, *benches("workbench", [tools.query])], guard)
    found = asyncio.run(results(assistant(script, workbench=guard_tools(once, guard))))

    assert found["call_1"].text.count("[overspill]") == found["call_2"].text.count("[overspill]") == 1
    assert script.offered == ["lines", "query", "inspect_output", "list_captures"]


def test_a_function_with_the_name_of_a_reading_tool_stays(guard: Guard) -> None:
    def inspect_output(count: int) -> str:
        """Return lines."""
        return tools.lines(count)

    script = Script([[Call("inspect_output", {"count": MANY}, "call_1")]])
    found = asyncio.run(results(assistant(script, workbench=guard_tools([inspect_output], guard))))

    assert "[overspill]" in found["call_1"].text
    assert script.offered == ["inspect_output", "list_captures"]


def test_tools_of_another_guard_are_refused(guard: Guard) -> None:
    once = guard_tools([tools.lines, *benches("workbench", [tools.query])], guard)
    for each in once:
        with pytest.raises(ValueError, match="another guard has this agent"):
            guard_tools([each], Guard(spool=False))
