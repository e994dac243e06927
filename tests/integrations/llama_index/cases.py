"""Cases for LlamaIndex alone: its line may come twice, tools for a retriever, an agent that writes code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import CodeActAgent, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from overspill import Guard
from overspill.integrations.llama_index import guard_agent, guard_tools

from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call
from tests.integrations.llama_index.harness import Script, results

__all__ = ["guard", "session"]
MANY = 20_000


def agent_of(script: Script, *given: Any) -> FunctionAgent:
    return FunctionAgent(name="agent", description="a", tools=list(given), llm=script.llm, streaming=False)


def test_guarding_twice_guards_once(guard: Guard) -> None:
    script = Script([[Call("lines", {"count": MANY}, "call_1")]])
    agent = guard_agent(guard_agent(agent_of(script, tools.lines), guard), guard)
    found = asyncio.run(results(agent))

    assert found["call_1"].text.count("[overspill]") == 1
    assert script.offered == ["lines", "inspect_output", "list_captures"]


def test_a_tool_with_the_name_of_a_reading_tool_stays(guard: Guard) -> None:
    def inspect_output(count: int) -> str:
        """Return lines."""
        return tools.lines(count)

    script = Script([[Call("inspect_output", {"count": MANY}, "call_1")]])
    found = asyncio.run(results(guard_agent(agent_of(script, inspect_output), guard)))

    assert "[overspill]" in found["call_1"].text
    assert script.offered == ["inspect_output", "list_captures"]


def test_functions_are_guarded_for_other_users_of_tools(guard: Guard) -> None:
    async def later(count: int) -> str:
        """Return lines."""
        return tools.lines(count)

    guarded = guard_tools([tools.lines, later], guard)

    assert [each.metadata.name for each in guarded] == ["lines", "later", "inspect_output", "list_captures"]
    assert all("[overspill]" in each(count=MANY).content for each in guarded[:2])


def test_an_agent_that_writes_code_sees_a_notice_and_the_functions_that_read(guard: Guard) -> None:
    told: list[Any] = []

    def answer(messages: Any, **_: Any) -> ChatMessage:
        told[:] = messages
        code = "<execute>print(lines())</execute>" if len(messages) == 2 else "done"
        return ChatMessage(role="assistant", content=code)

    async def execute(code: str) -> str:
        return tools.lines(MANY) if code == "print(lines())" else ""

    llm = MockFunctionCallingLLM(response_generator=answer)
    agent = guard_agent(CodeActAgent(execute, llm=llm, streaming=False), guard)
    asyncio.run(results(agent))
    reader: Any = agent.tools[1]

    assert "[overspill]" in told[-1].content
    assert "def inspect_output(*, capture, mode=None," in told[0].content
    assert "is not a handle" in reader.real_fn(capture="cap_oops")["error"]


def test_tools_of_another_guard_are_refused(guard: Guard) -> None:
    guarded = guard_tools([tools.lines], guard)
    agent = agent_of(Script([]), tools.query, *guarded)
    before = list(agent.tools)
    with pytest.raises(ValueError, match="another guard has this agent"):
        guard_agent(agent, Guard(spool=False))

    assert agent.tools == before
    assert guard_tools([tools.query, *guarded])[0].overspill.guard is guard
