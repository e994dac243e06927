"""Cases for LangChain alone: session directives in the state of the graph."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as as_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from overspill import Guard, Policy, SyncClient
from overspill.integrations.directives.directives import THINK_PROMPT, Directives
from overspill.integrations.directives.langchain import DirectivesMiddleware
from overspill.integrations.langchain import OverspillMiddleware
from overspill.wire import Outcome

from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, session

__all__ = ["guard", "session"]


class Model(GenericFakeChatModel):
    """Remembers what it was asked."""

    asked: list[list[str]]

    def bind_tools(self, *_: Any, **__: Any) -> Model:
        return self

    def _generate(self, messages: Any, *given: Any, **more: Any) -> Any:
        self.asked.append([each.content for each in messages])
        return super()._generate(messages, *given, **more)


def test_directives_hold_for_the_thread() -> None:
    calling = AIMessage("", tool_calls=[{"name": "lines", "args": {"count": 3}, "id": "call_1"}])
    model = Model(messages=iter([calling, AIMessage("done"), AIMessage("done"), AIMessage("done")]), asked=[])
    agent = create_agent(
        model,
        [as_tool(tools.lines)],
        system_prompt="Be kind.",
        middleware=[DirectivesMiddleware(allowed=["think", "verbose"])],
        checkpointer=InMemorySaver(),
    )
    here: Any = {"configurable": {"thread_id": "a"}}
    there: Any = {"configurable": {"thread_id": "b"}}
    first = agent.invoke({"messages": [("user", "/think /verbose /elevated why?")]}, here)
    second = agent.invoke({"messages": [("user", "/verbose:off and now?")]}, here)
    other = agent.invoke({"messages": [("user", "and now?")]}, there)

    assert model.asked[0] == ["Be kind.", THINK_PROMPT, "why?"]
    assert first["messages"][0].content == "why?"
    assert first["messages"][-1].content.startswith("done\n- lines (about ")
    assert model.asked[2][:3] == ["Be kind.", THINK_PROMPT, "why?"]
    assert second["messages"][-1].content == "done"
    assert Directives.read(second) == Directives(think=True)
    assert model.asked[3] == ["Be kind.", "and now?"]
    assert Directives.read(other) == Directives()
    assert not any(isinstance(each, ToolMessage) for each in other["messages"])


def test_a_stream_in_a_tool_is_seen_by_the_id_of_its_call_while_it_grows() -> None:
    seen: list[Any] = []

    def lines() -> Iterator[str]:
        yield "a line of the log\n" * 100_000
        while not seen:
            time.sleep(0.05)
            seen.extend(each for each in client.list(call_id="call_1").captures if each.state == "live")
        yield "the end\n"

    @as_tool
    def read_log() -> str:
        """Read the log."""
        return "".join(guard.wrap(lines, name="read_log")())

    session = f"stream-{uuid.uuid4()}"
    call = AIMessage("", tool_calls=[{"name": "read_log", "args": {}, "id": "call_1"}])
    model = Model(messages=iter([call, AIMessage("done")]), asked=[])
    with (
        SyncClient(os.environ["OVERSPILL_URL"], session=session) as client,
        Guard(client, spool=False) as guard,
    ):
        agent = create_agent(model, [read_log], middleware=[OverspillMiddleware(guard)])
        result = agent.invoke({"messages": [("user", "what does the log say?")]})
        entry = client.get("call:call_1")

    notice = next(each.content for each in result["messages"] if isinstance(each, ToolMessage))
    assert {each.id for each in seen} == {entry.id}
    assert (entry.state, entry.lines, entry.id in notice) == ("complete", 100_001, True)


def test_a_tool_that_only_has_the_name_of_a_reading_tool_is_guarded() -> None:
    guard = Guard(policy=Policy(max_bytes=1_000), spool=False)
    middleware = OverspillMiddleware(guard)
    inspect_output: Any = next(each for each in middleware.tools if each.name == "inspect_output")
    foreign = as_tool(tools.lines)
    foreign.name = "inspect_output"

    def answered(tool: Any) -> Any:
        call: Any = {"name": "inspect_output", "args": {}, "id": "call_1", "type": "tool_call"}
        request = ToolCallRequest(tool_call=call, tool=tool, state={}, runtime=None)
        return middleware.wrap_tool_call(request, lambda _: ToolMessage("x" * 2_000, tool_call_id="call_1"))

    assert answered(inspect_output).content == "x" * 2_000
    assert answered(foreign).content.startswith("[overspill NOT STORED]")


def agent_of(*middleware: Any) -> tuple[Model, Any]:
    """Return a model that calls a tool once, and its agent."""
    call = AIMessage("", tool_calls=[{"name": "lines", "args": {"count": 3}, "id": "call_1"}])
    model = Model(messages=iter([call, AIMessage("done"), AIMessage("done")]), asked=[])
    made = create_agent(model, [as_tool(tools.lines)], middleware=middleware, checkpointer=InMemorySaver())
    return model, made


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_the_answer_that_a_person_gives_for_a_tool_is_guarded(
    guard: Guard, session: str, mode: Literal["batched", "per_call"]
) -> None:
    person = HumanInTheLoopMiddleware({"lines": True}, interrupt_mode=mode)
    model, agent = agent_of(OverspillMiddleware(guard), person)
    thread: Any = {"configurable": {"thread_id": session}}
    agent.invoke({"messages": [("user", "go")]}, thread)
    answer = {"type": "respond", "message": tools.lines(20_000)}
    (asked,) = agent.get_state(thread).interrupts
    resumed = {"decisions": [answer]} if mode == "batched" else {asked.id: answer}
    state = agent.invoke(Command(resume=resumed), thread)

    assert model.asked[-1][2].startswith("[overspill] Output of lines (call_1")
    assert [each.content for each in state["messages"]][:3] == model.asked[-1]
    assert state["messages"][2].response_metadata["overspill"]["outcome"] == "captured"
    assert sum(each.count for each in guard.stats.values()) == 1


def test_results_that_come_with_the_input_are_guarded(guard: Guard, session: str) -> None:
    model, agent = agent_of(OverspillMiddleware(guard))
    thread: Any = {"configurable": {"thread_id": session}}
    call = AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "call_0"}])
    whole = ToolMessage(tools.lines(20_000), tool_call_id="call_0")
    state = asyncio.run(agent.ainvoke({"messages": [("user", "go"), call, whole]}, thread))

    assert model.asked[0][2].startswith("[overspill] Output of ask (call_0")
    assert state["messages"][2].content == model.asked[0][2]
    assert [name for name, _ in guard.stats] == ["ask", "lines"]


class WithoutIds(AgentMiddleware):
    """Makes the conversation anew for the model: its messages have no ids."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        copies = [each.model_copy(update={"id": None}) for each in request.messages]
        return handler(request.override(messages=copies))


def test_of_messages_without_ids_only_the_long_result_is_replaced(guard: Guard, session: str) -> None:
    model, agent = agent_of(WithoutIds(), OverspillMiddleware(guard))
    thread: Any = {"configurable": {"thread_id": session}}
    call = AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "call_0"}])
    whole = ToolMessage(tools.lines(20_000), tool_call_id="call_0")
    state = agent.invoke({"messages": [("user", "go"), call, whole]}, thread)

    assert model.asked[0][:2] == ["go", ""]
    assert model.asked[0][2].startswith("[overspill] Output of ask (call_0")
    assert [each.tool_call_id for each in state["messages"] if isinstance(each, ToolMessage)] == [
        "call_0",
        "call_1",
    ]


class FailsOnce(AgentMiddleware):
    """A provider that refuses one request of the model."""

    def __init__(self, request: int) -> None:
        super().__init__()
        self._left = request

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise ConnectionError("overloaded")
        return handler(request)


@pytest.mark.parametrize("is_new_process", [False, True])
def test_an_answer_of_a_reading_tool_stays_whole_if_the_run_goes_on_after_a_failure(
    guard: Guard, session: str, is_new_process: bool
) -> None:
    client: Any = guard.client
    small = Guard(client, Policy(max_bytes=4_000), spool=False)
    read = {"capture": "call:call_1", "mode": "range", "start": 1, "end": 900}
    turns = [("lines", {"count": 2_000}, "call_1"), ("inspect_output", read, "call_2")]
    calls = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": i}]) for name, args, i in turns]
    model = Model(messages=iter([*calls, AIMessage("done")]), asked=[])
    memory, thread = InMemorySaver(), {"configurable": {"thread_id": session}}

    def made() -> Any:
        middleware = [OverspillMiddleware(small), failing]
        return create_agent(model, [as_tool(tools.lines)], middleware=middleware, checkpointer=memory)

    failing = FailsOnce(3)
    agent = made()
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [("user", "go")]}, thread)
    agent = made() if is_new_process else agent
    answer = agent.get_state(thread).values["messages"][-1].content
    agent.invoke(None, thread)

    assert len(answer) > 8_000
    assert model.asked[-1][-1] == answer
    assert is_new_process or small.stats["inspect_output", Outcome.INLINE].count == 1


def test_a_result_that_a_person_edits_while_the_run_waits_is_guarded(guard: Guard, session: str) -> None:
    call = AIMessage("", tool_calls=[{"name": "lines", "args": {"count": 3}, "id": "call_1"}])
    model = Model(messages=iter([call, AIMessage("done")]), asked=[])
    middleware = [OverspillMiddleware(guard)]
    given: Any = {"middleware": middleware, "checkpointer": InMemorySaver(), "interrupt_after": ["tools"]}
    agent = create_agent(model, [as_tool(tools.lines)], **given)
    thread: Any = {"configurable": {"thread_id": session}}
    result = agent.invoke({"messages": [("user", "go")]}, thread)["messages"][-1]
    agent.update_state(thread, {"messages": [result.model_copy(update={"content": tools.lines(20_000)})]})
    agent.invoke(None, thread)

    assert model.asked[-1][-1].startswith("[overspill] Output of lines (call_1")
