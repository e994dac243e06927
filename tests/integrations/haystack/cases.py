"""Cases for Haystack alone: content blocks, state, other hooks, toolsets, agents as tools, YAML."""

from __future__ import annotations

import asyncio
import base64
import pickle
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ImageContent, TextContent
from haystack.hooks import hook
from haystack.hooks.tool_result_offloading import AlwaysOffload, ToolResultOffloadHook
from haystack.tools import AgentTool, Tool, Toolset, create_tool_from_function
from overspill import Guard, SyncClient
from overspill.integrations.haystack import SESSION, OverspillHook, ReadingTools, guard_agent
from overspill.integrations.haystack_store import OverspillResultStore

from tests.integrations.haystack.harness import Script, results
from tests.integrations.kit import tools
from tests.integrations.kit.cases import MANY, handle_in, stored
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call

__all__ = ["guard", "session"]
SCHEMA = {"type": "object", "properties": {}}


def made(name: str, function: Any, **more: Any) -> Tool:
    return Tool(name=name, description=name, parameters=SCHEMA, function=function, **more)


def agent_of(tool: Any, *, calls: int = 1, arguments: Any = None, **more: Any) -> Agent:
    """Return an agent whose model calls a tool so often, all at once."""
    turn = [Call(tool.name, arguments or {}, f"call_{number}") for number in range(1, calls + 1)]
    return Agent(chat_generator=Script([turn]), tools=[tool], **more)


def message_of(agent: Any, **more: Any) -> Any:
    """Run the agent; return the message of its first call."""
    found = agent.run(messages=[ChatMessage.from_user("go")], **more)["messages"]
    return next(each for each in found if each.tool_call_result is not None)


def lines_of(count: int = MANY) -> Tool:
    return made("lines", lambda: tools.lines(count))


def test_pictures_stay_beside_the_text_that_goes(guard: Guard) -> None:
    picture = ImageContent(base64_image=base64.b64encode(tools.PNG).decode(), mime_type="image/png")
    look = made(
        "look", lambda: [picture, TextContent(tools.lines(MANY))], outputs_to_string={"raw_result": True}
    )
    message = message_of(guard_agent(agent_of(look), guard))
    first, second = message.tool_call_result.result

    assert first == picture
    assert "[overspill]" in second.text
    assert stored(guard, message.meta["overspill"]["capture"]).decode() == tools.lines(MANY)


def test_a_large_picture_is_no_large_text(guard: Guard) -> None:
    picture = ImageContent(base64_image=base64.b64encode(tools.PNG * 20_000).decode(), mime_type="image/png")
    look = made("look", lambda: [picture], outputs_to_string={"raw_result": True})

    assert message_of(guard_agent(agent_of(look), guard)).tool_call_result.result == [picture]


def test_a_saved_conversation_has_none_of_our_classes(guard: Guard) -> None:
    script = Script([[Call("list_captures", {}, "call_1")]])
    message = message_of(guard_agent(Agent(chat_generator=script, tools=[lines_of()]), guard))

    assert type(message.tool_call_result.result) is str
    assert b"overspill." not in pickle.dumps(message)


def test_state_and_callback_have_the_whole(guard: Guard) -> None:
    chunks: list[Any] = []
    tool = made("ask", lambda: {"rows": tools.lines(MANY)}, outputs_to_state={"rows": {"source": "rows"}})
    agent = agent_of(tool, state_schema={"rows": {"type": str}}, streaming_callback=chunks.append)
    found = guard_agent(agent, guard).run(messages=[ChatMessage.from_user("go")])

    assert found["rows"] == tools.lines(MANY)
    assert any(chunk.tool_call_result is not None for chunk in chunks)
    assert "[overspill]" in str(found["messages"])


def test_the_session_is_that_of_the_run(guard: Guard) -> None:
    agent = guard_agent(agent_of(lines_of()), guard)
    message = message_of(agent, hook_context={SESSION: "of-the-run"})
    assert isinstance(guard.client, SyncClient)

    assert guard.client.get(message.meta["overspill"]["capture"]).session == "of-the-run"


def test_without_a_session_of_the_run_it_is_that_of_the_guard(guard: Guard, session: str) -> None:
    message = message_of(guard_agent(agent_of(lines_of()), guard))
    assert isinstance(guard.client, SyncClient)

    assert guard.client.get(message.meta["overspill"]["capture"]).session == session


def test_other_hooks_see_the_whole_and_stay(guard: Guard) -> None:
    seen: list[str] = []

    @hook
    def look(state: State) -> None:
        seen.append(state.data["messages"][-1].tool_call_result.result)

    agent = guard_agent(agent_of(lines_of(), hooks={"after_tool": [look]}), guard)

    assert "[overspill]" in message_of(agent).tool_call_result.result
    assert seen == [tools.lines(MANY)]


def test_results_of_earlier_steps_are_not_touched(guard: Guard) -> None:
    turns = [[Call("lines", {}, f"call_{number}")] for number in range(3)]
    agent = guard_agent(Agent(chat_generator=Script(turns), tools=[lines_of()]), guard)
    found = results(agent, "async", "of-the-run")

    assert [handle_in(each.text) for each in found.values()]
    assert all(each.text.count("[overspill]") == 1 for each in found.values())


def test_a_toolset_is_kept(guard: Guard) -> None:
    script = Script([[Call("lines", {}, "call_1")]])
    agent = guard_agent(Agent(chat_generator=script, tools=Toolset([lines_of()])), guard)

    assert "[overspill]" in message_of(agent).tool_call_result.result
    assert {"lines", "inspect_output", "list_captures"} == set(script.offered)


def test_the_agent_that_was_given_stays_as_it_is(guard: Guard) -> None:
    agent = agent_of(lines_of())
    guarded = guard_agent(agent, guard)

    assert message_of(agent).tool_call_result.result == tools.lines(MANY)
    assert guard_agent(guarded, guard) is guarded


def test_what_it_raises_without_us_it_raises_with_us(guard: Guard) -> None:
    tool = create_tool_from_function(tools.fail)
    agent = agent_of(tool, arguments={"size": 10}, raise_on_tool_invocation_failure=True)
    with pytest.raises(Exception, match="cannot compile") as without:
        message_of(agent)
    with pytest.raises(type(without.value), match="cannot compile"):
        message_of(guard_agent(agent, guard))


def test_an_agent_inside_a_tool_has_its_answer_guarded(guard: Guard) -> None:
    inner = Agent(chat_generator=Speaker())
    tool = AgentTool(inner, name="expert", description="An expert.")
    outer = Agent(
        chat_generator=Script([[Call("expert", {"messages": [{"role": "user", "content": "?"}]}, "call_1")]]),
        tools=[tool],
    )

    assert "[overspill]" in message_of(guard_agent(outer, guard)).tool_call_result.result


@component
class Speaker:
    """A model that says much."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant("word " * 100_000)]}


@pytest.mark.parametrize("returned", [None, 1, [], {"a": 1}, b"bytes", ""])
def test_odd_results_are_what_they_would_be_without_us(guard: Guard, returned: Any) -> None:
    agent = agent_of(made("odd", lambda: returned))

    assert message_of(guard_agent(agent, guard)) == message_of(agent)


def test_a_pipeline_that_was_written_as_yaml_is_guarded() -> None:
    pipeline = Pipeline()
    pipeline.add_component("agent", guard_agent(Agent(chat_generator=Script())))
    read = Pipeline.loads(pipeline.dumps(), allowed_modules=["overspill.*", "tests.*"])
    agent: Any = read.get_component("agent")

    assert isinstance(agent.hooks["after_tool"][0], OverspillHook)
    assert any(isinstance(each, ReadingTools) for each in agent.tools)
    assert guard_agent(agent) is agent


def test_calls_without_ids_and_with_the_same_keep_their_results(guard: Guard, session: str) -> None:
    turn = [Call("lines", {}, "call_0"), Call("lines", {}, "call_0"), Call("lines", {}, None)]  # type: ignore[arg-type]
    agent = guard_agent(Agent(chat_generator=Script([turn]), tools=[lines_of()]), guard)
    given: Any = {"messages": [ChatMessage.from_user("go")], "hook_context": {SESSION: session}}
    found = asyncio.run(agent.run_async(**given))["messages"]
    texts = [each.tool_call_result.result for each in found if each.tool_call_result is not None]

    assert len(texts) == len(turn)
    assert all(stored(guard, handle_in(text)).decode() == tools.lines(MANY) for text in texts)


# --- the store ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "text", "ä\ud800", b"", b"text", bytes(range(256))])
def test_a_store_gives_back_what_it_was_given(guard: Guard, content: str | bytes) -> None:
    assert isinstance(guard.client, SyncClient)
    store = OverspillResultStore(guard.client)

    assert store.read(store.write(key="1_tool_call.txt", content=content)) == content


def test_haystacks_own_hook_keeps_results_as_captures(guard: Guard) -> None:
    assert isinstance(guard.client, SyncClient)
    picture = ImageContent(base64_image=base64.b64encode(tools.PNG).decode(), mime_type="image/png")
    look = made(
        "look", lambda: [picture, TextContent(tools.lines(MANY))], outputs_to_string={"raw_result": True}
    )
    hook = ToolResultOffloadHook(OverspillResultStore(guard.client), {"*": AlwaysOffload()})
    message = message_of(agent_of(look, hooks={"after_tool": [hook]}))
    first, second = message.meta["tool_result_offloaded"]

    assert stored(guard, first) == tools.PNG
    assert stored(guard, second).decode() == tools.lines(MANY)
    assert second in message.tool_call_result.result


def test_the_tools_that_read_find_what_haystacks_own_hook_stored(guard: Guard) -> None:
    assert isinstance(guard.client, SyncClient)
    store = OverspillResultStore(guard.client)
    reference = store.write(key="1_tool_call.txt", content=tools.lines(MANY))
    call = Call("inspect_output", {"capture": reference, "mode": "grep", "pattern": "needle"}, "call_1")
    agent = Agent(chat_generator=Script([[call]]), tools=ReadingTools(guard))

    assert tools.NEEDLE in message_of(agent).tool_call_result.result


def test_a_store_without_a_service_leaves_the_result_where_it_is() -> None:
    with SyncClient("http://127.0.0.1:1", retries=0, connect_timeout=0.2) as client:
        hook = ToolResultOffloadHook(OverspillResultStore(client), {"*": AlwaysOffload()})
        message = message_of(agent_of(lines_of(), hooks={"after_tool": [hook]}))

    assert message.tool_call_result.result == tools.lines(MANY)


def test_a_store_is_written_and_read_as_a_dict() -> None:
    read = OverspillResultStore.from_dict(OverspillResultStore(session="s", ttl=60).to_dict())

    assert (read.session, read.ttl) == ("s", 60)


def test_an_agent_of_another_guard_is_refused(guard: Guard) -> None:
    agent = guard_agent(agent_of(lines_of()), guard)
    with pytest.raises(ValueError, match="another guard has this agent"):
        guard_agent(agent, Guard(spool=False))

    assert guard_agent(agent) is agent
