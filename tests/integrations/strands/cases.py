"""Cases for Strands alone: blocks, MCP clients, sessions, other hooks, retries, interrupts, calls by code."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import StdioServerParameters, stdio_client
from overspill import SyncClient
from overspill.integrations.strands import OverspillPlugin
from overspill.integrations.strands_storage import OverspillStorage
from strands import Agent, ToolContext
from strands import tool as as_tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.session import FileSessionManager, SnapshotSessionManager
from strands.storage import Storage
from strands.tools.executors import SequentialToolExecutor
from strands.tools.mcp import MCPClient
from strands.types.exceptions import StorageError
from strands.vended_plugins.context_offloader import ContextOffloader

from tests.integrations.kit import tools
from tests.integrations.kit.cases import MANY, handle_in, stored
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call
from tests.integrations.strands.harness import Script, results

if TYPE_CHECKING:
    from overspill import Guard

__all__ = ["guard", "session"]
SERVER = Path(__file__).parents[1] / "kit" / "mcp_server.py"


def agent_of(guard: Guard, tool: Any, *, calls: int = 1, arguments: Any = None, **more: Any) -> Any:
    """Return an agent whose model calls a tool so often, one call a turn."""
    made = tool if hasattr(tool, "tool_spec") or isinstance(tool, MCPClient) else as_tool(tool)
    name = more.pop("name_of_tool", None) or made.tool_name
    turns = [[Call(name, arguments or {}, f"call_{number}")] for number in range(1, calls + 1)]
    return Agent(Script(turns), tools=[made], plugins=[OverspillPlugin(guard)], callback_handler=None, **more)


def one(agent: Any, call_id: str = "call_1") -> Any:
    agent("go")
    return result_in(agent, call_id)


def result_in(agent: Any, call_id: str) -> Any:
    blocks = [block for message in agent.messages for block in message["content"]]
    return next(
        block["toolResult"] for block in blocks if block.get("toolResult", {}).get("toolUseId") == call_id
    )


def test_blocks_of_a_result_stay_beside_the_text_that_goes(guard: Guard) -> None:
    picture = {"image": {"format": "png", "source": {"bytes": tools.PNG}}}

    def look() -> dict[str, Any]:
        """Look."""
        return {"status": "error", "content": [picture, {"text": tools.lines(MANY)}]}

    result = one(agent_of(guard, look))

    assert result["content"][0] == picture
    assert "[overspill]" in result["content"][1]["text"]
    assert (result["status"], result["toolUseId"]) == ("error", "call_1")


def test_json_content_keeps_its_small_fields(guard: Guard) -> None:
    def ask() -> dict[str, Any]:
        """Ask."""
        return {"status": "success", "content": [{"json": tools.query(5_000)}]}

    result = one(agent_of(guard, ask))

    assert result["metadata"]["overspill"]["outcome"] == "captured"
    assert len(str(result)) < 12_000
    assert "5000" in str(result["content"])


def test_an_mcp_server_is_guarded_and_its_structured_content_too(guard: Guard) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    agent = agent_of(
        guard,
        MCPClient(lambda: stdio_client(parameters)),
        arguments={"rows": 5_000},
        name_of_tool="query",
    )
    result = one(agent)
    agent.cleanup()

    assert result["metadata"]["overspill"]["outcome"] == "captured"
    assert len(str(result)) < 20_000
    assert json.loads(stored(guard, result["metadata"]["overspill"]["capture"])) == tools.query(5_000)


def test_the_session_is_that_of_the_session_manager(guard: Guard, tmp_path: Path) -> None:
    manager = FileSessionManager(session_id="of-the-manager", storage_dir=str(tmp_path))
    result = one(agent_of(guard, tools.lines, arguments={"count": MANY}, session_manager=manager))
    assert isinstance(guard.client, SyncClient)

    assert guard.client.get(result["metadata"]["overspill"]["capture"]).session == "of-the-manager"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) < 30_000


def test_other_hooks_see_the_whole_wherever_they_stand(guard: Guard) -> None:
    seen: list[Any] = []
    agent = agent_of(guard, tools.lines, arguments={"count": MANY})
    agent.add_hook(lambda event: seen.append(event.result["content"][0]["text"]), AfterToolCallEvent)

    assert "[overspill]" in one(agent)["content"][0]["text"]
    assert seen == [tools.lines(MANY)]


def test_what_another_hook_makes_of_a_result_is_guarded(guard: Guard) -> None:
    def longer(event: AfterToolCallEvent) -> None:
        event.result = {**event.result, "content": [{"text": tools.lines(MANY)}]}

    agent = agent_of(guard, tools.lines, arguments={"count": 1})
    agent.add_hook(longer)

    assert "[overspill]" in one(agent)["content"][0]["text"]


def test_a_tool_with_the_name_of_a_reading_tool_stays(guard: Guard) -> None:
    def inspect_output() -> str:
        """Return lines."""
        return tools.lines(MANY)

    agent = agent_of(guard, inspect_output)
    text = one(agent)["content"][0]["text"]

    assert stored(guard, handle_in(text)).decode() == tools.lines(MANY)
    assert agent.tool_names == ["inspect_output", "list_captures"]


def test_an_attempt_that_is_discarded_is_not_stored(guard: Guard, session: str) -> None:
    attempts: list[int] = []

    def retry_once(event: AfterToolCallEvent) -> None:
        attempts.append(len(attempts))
        event.retry = len(attempts) == 1

    agent = agent_of(guard, tools.lines, arguments={"count": MANY})
    agent.add_hook(retry_once)
    one(agent)
    assert isinstance(guard.client, SyncClient)

    assert len(attempts) == 2
    assert len(guard.client.list(session=session).captures) == 1


def test_a_call_that_waits_for_a_person_goes_on_afterwards(guard: Guard) -> None:
    def ask(event: BeforeToolCallEvent) -> None:
        event.interrupt("approval", reason="may it?")

    agent = agent_of(guard, tools.lines, arguments={"count": MANY})
    agent.add_hook(ask)
    stopped = agent("go")
    assert stopped.stop_reason == "interrupt"
    agent([{"interruptResponse": {"interruptId": stopped.interrupts[0].id, "response": "yes"}}])

    assert "[overspill]" in result_in(agent, "call_1")["content"][0]["text"]


def test_a_tool_that_interrupts_is_no_result(guard: Guard) -> None:
    @as_tool(context=True)
    def careful(tool_context: ToolContext) -> str:
        """Ask, and return lines."""
        assert tool_context.interrupt("sure", reason="?") == "yes"
        return tools.lines(MANY)

    agent = agent_of(guard, careful)
    stopped = agent("go")
    agent([{"interruptResponse": {"interruptId": stopped.interrupts[0].id, "response": "yes"}}])

    assert "[overspill]" in result_in(agent, "call_1")["content"][0]["text"]


@pytest.mark.parametrize("executor", [None, SequentialToolExecutor()])
def test_what_a_tool_captures_itself_belongs_to_its_call(guard: Guard, executor: Any) -> None:
    found = one(agent_of(guard, guard.wrap(tools.lines), arguments={"count": MANY}, tool_executor=executor))
    assert isinstance(guard.client, SyncClient)

    assert guard.client.get(handle_in(found["content"][0]["text"])).call_id == "call_1"


def test_code_gets_the_whole_and_the_conversation_the_notice(guard: Guard) -> None:
    agent = agent_of(guard, tools.lines)
    whole = agent.tool.lines(count=MANY)
    recorded = result_in(agent, whole["toolUseId"])

    assert whole["content"][0]["text"] == tools.lines(MANY)
    assert "[overspill]" in recorded["content"][0]["text"]
    assert stored(guard, recorded["metadata"]["overspill"]["capture"]).decode() == tools.lines(MANY)


def test_a_tool_that_streams_passes_its_events_and_its_last_is_guarded(guard: Guard) -> None:
    @as_tool
    async def watch() -> Any:
        """Watch."""
        yield "begun"
        yield tools.lines(MANY)

    async def run() -> list[Any]:
        events = [event async for event in agent.stream_async("go")]
        return [event["tool_stream_event"]["data"] for event in events if "tool_stream_event" in event]

    agent = agent_of(guard, watch)

    assert asyncio.run(run())[0] == "begun"
    assert "[overspill]" in result_in(agent, "call_1")["content"][0]["text"]


def test_a_task_in_the_background_is_guarded_when_it_has_ended(guard: Guard) -> None:
    agent = agent_of(guard, tools.lines, arguments={"count": MANY}, background_tasks={"always": ["lines"]})
    agent("go")
    said = json.dumps(agent.messages, default=str)

    assert "[overspill]" in said
    assert len(said) < 16_000
    assert stored(guard, handle_in(said)).decode() == tools.lines(MANY)


def test_an_agent_that_is_a_tool_reads_what_its_parent_captured(guard: Guard) -> None:
    plugin = OverspillPlugin(guard)
    parent = Agent(
        Script([[Call("lines", {"count": MANY}, "call_1")]]), tools=[as_tool(tools.lines)], plugins=[plugin]
    )
    capture = one(parent)["metadata"]["overspill"]["capture"]
    call = Call("inspect_output", {"capture": capture, "mode": "grep", "pattern": "needle"}, "call_2")
    child = Agent(Script([[call]]), plugins=[plugin], callback_handler=None)

    assert tools.NEEDLE in results(child, "sync")["call_2"].text


@pytest.mark.parametrize("returned", [None, 1, [], {"a": 1}, object(), b"bytes"])
def test_odd_results_are_what_they_would_be_without_us(guard: Guard, returned: Any) -> None:
    def odd() -> Any:
        """Return something odd."""
        return returned

    with_us = one(agent_of(guard, odd))
    without = Agent(Script([[Call("odd", {}, "call_1")]]), tools=[as_tool(odd)], callback_handler=None)

    assert with_us == one(without)


def test_a_call_id_that_is_used_again_keeps_both_results(guard: Guard, session: str) -> None:
    turns = [[Call("lines", {"count": MANY + number}, "call_0")] for number in range(2)]
    agent = Agent(
        Script(turns), tools=[as_tool(tools.lines)], plugins=[OverspillPlugin(guard)], callback_handler=None
    )
    agent("go")
    assert isinstance(guard.client, SyncClient)
    contents = [guard.client.content(entry.id) for entry in guard.client.list(session=session).captures]

    assert sorted(map(len, contents)) == sorted(len(tools.lines(MANY + number)) for number in range(2))


# --- the storage ----------------------------------------------------------------------------------


def storage_of(guard: Guard, session: str) -> OverspillStorage:
    assert isinstance(guard.client, SyncClient)
    return OverspillStorage(guard.client, session=session)


def test_a_storage_does_what_strands_own_do(guard: Guard, session: str) -> None:
    storage = storage_of(guard, session)

    async def use() -> None:
        assert await storage.read("a/b") is None
        await storage.delete("a/b")
        for data in (b"one", b"two", b"one", bytes(range(256))):
            await storage.write("a/b", data)
            assert await storage.read("a/b") == data
        await storage.write("a/c", b"apples and pears")
        await storage.write("d", b"pears")
        assert await storage.list() == ["a/b", "a/c", "d"]
        assert await storage.list("a/") == ["a/b", "a/c"]
        assert [found.key for found in await storage.search("apples")] == ["a/c"]
        await storage.delete("a/b")
        assert await storage.read("a/b") is None
        assert await storage.list() == ["a/c", "d"]

    assert isinstance(storage, Storage)
    asyncio.run(use())


@pytest.mark.parametrize("key", ["", "k" * 5_000])
def test_what_is_no_key_is_refused(guard: Guard, session: str, key: str) -> None:
    with pytest.raises(StorageError):
        asyncio.run(storage_of(guard, session).write(key, b"data"))


def test_a_storage_without_a_service_says_so() -> None:
    client = SyncClient("http://127.0.0.1:1", retries=0, connect_timeout=0.2)
    with client, pytest.raises(StorageError):
        asyncio.run(OverspillStorage(client).read("a"))


def test_strands_own_offloader_keeps_its_blocks_as_captures(guard: Guard, session: str) -> None:
    offloader = ContextOffloader(storage_of(guard, session))
    turns = [[Call("lines", {"count": MANY}, "call_1")]]
    agent = Agent(Script(turns), tools=[as_tool(tools.lines)], plugins=[offloader], callback_handler=None)
    shown = one(agent)["content"][0]["text"]
    read = agent.tool.retrieve_offloaded_content(reference=handle_in(shown), pattern="needle")

    assert stored(guard, handle_in(shown)).decode() == tools.lines(MANY)
    assert tools.NEEDLE in read["content"][0]["text"]


def test_an_invented_reference_is_unknown(guard: Guard, session: str) -> None:
    for invented in ("cap_" + "a" * 20, "mem_1_tool-123_0"):
        with pytest.raises(KeyError):
            asyncio.run(storage_of(guard, session).retrieve(invented))


def test_sessions_of_strands_are_kept_in_a_storage(guard: Guard, session: str) -> None:
    for _ in range(2):
        manager = SnapshotSessionManager(session_id="s", storage=storage_of(guard, session))
        agent = Agent(Script([]), session_manager=manager, agent_id="a", callback_handler=None)
        agent("go")

    assert sum(message["role"] == "user" for message in agent.messages) == 2
