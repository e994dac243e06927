"""Cases for the OpenAI Agents SDK alone: handoffs, agents as tools, MCP servers, shells, output schemas."""

from __future__ import annotations

import asyncio
import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunConfig,
    Runner,
    RunState,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    function_tool,
    handoff,
)
from agents.items import ToolCallOutputItem
from agents.mcp import MCPServer, MCPServerStdio
from agents.realtime import RealtimeAgent
from agents.sandbox import SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Shell
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from agents.util._approvals import evaluate_function_tool_approval
from openai.types.responses import ResponseFunctionShellToolCall
from overspill import Guard, SyncClient
from overspill.integrations.directives.directives import THINK_PROMPT
from overspill.integrations.directives.openai_agents import answer, directed
from overspill.integrations.openai_agents import guard_agent
from typing_extensions import TypedDict

from tests.integrations.kit import tools
from tests.integrations.kit.cases import MANY, handle_in, stored
from tests.integrations.kit.fixtures import guard, session

__all__ = ["guard", "session"]
SERVER = Path(__file__).parents[1] / "kit" / "mcp_server.py"


def call(name: str, call_id: str = "call_1", **arguments: Any) -> list[Any]:
    return [function_call(name, arguments, call_id=call_id)]


def scripted(*turns: list[Any]) -> ScriptedModel:
    return ScriptedModel([*turns, [assistant_message("done")]])


def outputs(agent: Agent[Any], session: str = "s", **more: Any) -> list[ToolCallOutputItem]:
    config = RunConfig(group_id=session, tracing_disabled=True, **more)
    run = asyncio.run(Runner.run(agent, "go", run_config=config))
    return [each for each in run.new_items if isinstance(each, ToolCallOutputItem)]


def test_the_agent_that_is_handed_to_is_guarded_and_can_read(guard: Guard) -> None:
    child: Agent[Any] = Agent(name="child", tools=[function_tool(tools.lines)])
    child.model = scripted(call("lines", count=MANY))
    parent: Agent[Any] = Agent(name="parent", handoffs=[handoff(child)])
    parent.model = scripted(call("transfer_to_child", "call_0"))
    child.handoffs.append(parent)
    found = outputs(guard_agent(parent, guard))

    assert "[overspill]" in found[-1].output
    assert {"inspect_output", "list_captures"} <= {tool.name for tool in child.model.calls[0].tools}
    assert parent.handoffs[0].agent_name == "child"


def test_a_run_that_goes_on_behind_a_handoff_in_another_process_is_guarded(guard: Guard) -> None:
    @function_tool(needs_approval=True)
    def far() -> str:
        return tools.lines(MANY)

    def first() -> Agent[Any]:
        child: Agent[Any] = Agent(name="child", model=scripted(call("far", "call_2")), tools=[far])
        leads = scripted(call("transfer_to_child"))
        return guard_agent(Agent(name="parent", model=leads, handoffs=[handoff(child)]), guard)

    def behind() -> Agent[Any]:
        child: Agent[Any] = Agent(name="child", model=scripted(), tools=[far])
        return guard_agent(Agent(name="parent", handoffs=[handoff(child)]), guard)

    async def both() -> Any:
        config = RunConfig(tracing_disabled=True)
        paused = await Runner.run(first(), "go", run_config=config)
        parent = behind()
        state: Any = await RunState.from_string(parent, paused.to_state().to_string())
        state.approve(state.get_interruptions()[0])
        return await Runner.run(parent, state, run_config=config)

    shown = [each.output for each in asyncio.run(both()).new_items if isinstance(each, ToolCallOutputItem)]

    assert stored(guard, handle_in(shown[-1])).decode() == tools.lines(MANY)


def test_an_agent_that_is_a_tool_is_guarded_inside_and_outside(guard: Guard, session: str) -> None:
    child: Agent[Any] = Agent(name="child", tools=[function_tool(tools.lines)])
    child.model = ScriptedModel([call("lines", count=MANY), [assistant_message("word " * MANY)]])
    parent: Agent[Any] = Agent(name="parent", tools=[child.as_tool("ask", "Ask the child.")])
    parent.model = scripted(call("ask", input="go"))
    (found,) = outputs(guard_agent(parent, guard), session)
    (seen,) = [each for each in child.model.calls[1].input if each.get("type") == "function_call_output"]

    assert "[overspill]" in seen["output"]
    assert stored(guard, handle_in(found.output)).decode() == "word " * MANY


def test_results_of_mcp_servers_are_guarded_with_their_call_and_session(guard: Guard, session: str) -> None:
    async def run() -> list[Any]:
        params: Any = {"command": sys.executable, "args": [str(SERVER)]}
        async with MCPServerStdio(params, custom_data_extractor=lambda _: {"theirs": 1}) as server:
            agent: Agent[Any] = Agent(name="agent", mcp_servers=[server])
            agent.model = scripted(call("lines", count=MANY), call("lines", "call_2", count=2))
            guarded = guard_agent(agent, guard)
            assert isinstance(guarded.mcp_servers[0], MCPServerStdio)
            assert isinstance(guarded.mcp_servers[0], MCPServer)
            config = RunConfig(group_id=f"{session}-group", tracing_disabled=True)
            return (await Runner.run(guarded, "go", run_config=config)).new_items

    spilled, small = [each for each in asyncio.run(run()) if isinstance(each, ToolCallOutputItem)]
    assert isinstance(guard.client, SyncClient)
    entry = guard.client.get(handle_in(spilled.output["text"]))

    assert (entry.session, entry.call_id, entry.tool) == (f"{session}-group", "call_1", "lines")
    assert spilled.custom_data["theirs"] == 1
    assert spilled.custom_data["overspill"]["outcome"] == "captured"
    assert small.custom_data == {"theirs": 1}
    assert small.output == {"type": "text", "text": tools.lines(2)}


class Rows(TypedDict):
    count: int
    rows: list[int]


def test_an_output_with_a_schema_becomes_a_notice_without_breaking_the_run(guard: Guard) -> None:
    @function_tool(output_type=Rows)
    def query(count: int) -> Rows:
        return {"count": count, "rows": list(range(count))}

    agent: Agent[Any] = Agent(name="agent", tools=[query])
    agent.model = scripted(call("query", count=MANY), call("query", "call_2", count=2))
    spilled, small = outputs(guard_agent(agent, guard))

    assert '"count": 20000' in spilled.output
    assert stored(guard, handle_in(spilled.output)).startswith(b"{")
    assert spilled.custom_data["overspill"]["outcome"] == "captured"
    assert small.raw_item["output"] == '{"count":2,"rows":[0,1]}'


def test_a_local_shell_keeps_its_outcomes(guard: Guard, session: str) -> None:
    def execute(_: Any) -> ShellResult:
        outcome = ShellCallOutcome(type="exit", exit_code=3)
        return ShellResult(output=[ShellCommandOutput(stdout=tools.lines(MANY), outcome=outcome)])

    item = ResponseFunctionShellToolCall.model_validate(
        {
            "id": "1",
            "call_id": "call_1",
            "type": "shell_call",
            "status": "completed",
            "action": {"commands": ["make"], "timeout_ms": 1, "max_output_length": 9_999_999},
        }
    )
    agent: Agent[Any] = Agent(name="agent", tools=[ShellTool(executor=execute)], model=scripted([item]))
    (found,) = outputs(guard_agent(agent, guard), session)
    (shown,) = found.raw_item["output"]

    assert stored(guard, handle_in(shown["stdout"])).decode() == tools.lines(MANY)
    assert shown["outcome"] == {"type": "exit", "exit_code": 3}


def test_guarding_twice_guards_once_and_a_clone_stays_guarded(guard: Guard) -> None:
    given = function_tool(tools.lines)
    agent: Agent[Any] = Agent(name="agent", tools=[given])
    first = list(guard_agent(agent, guard).tools)
    again = guard_agent(agent, guard).tools
    clone = agent.clone(model=scripted(call("lines", count=MANY)))
    (found,) = outputs(clone)

    assert all(new is old for new, old in zip(again, first, strict=True))
    assert agent.tools[0] is not given
    assert found.output.count("[overspill]") == 1


def test_a_deep_copy_stays_guarded(guard: Guard) -> None:
    with_schema = function_tool(tools.query, output_type=Rows)
    agent: Agent[Any] = Agent(name="agent", tools=[function_tool(tools.lines), with_schema])
    copied = copy.deepcopy(guard_agent(agent, guard))
    copied.model = scripted(call("lines", count=MANY))
    (found,) = outputs(copied)

    assert "[overspill]" in found.output
    assert copied.tools[0] is not agent.tools[0]


def test_custom_data_of_a_tool_stays_beside_ours(guard: Guard) -> None:
    tool = function_tool(tools.lines, custom_data_extractor=lambda _: {"theirs": 1})
    agent: Agent[Any] = Agent(name="agent", tools=[tool], model=scripted(call("lines", count=MANY)))
    (found,) = outputs(guard_agent(agent, guard))

    assert found.custom_data["theirs"] == 1
    assert found.custom_data["overspill"]["outcome"] == "captured"


def test_a_guarded_tool_is_still_the_sdks_own(guard: Guard) -> None:
    asked: list[Any] = []

    async def approve(_: Any, arguments: Any, call_id: str) -> bool:
        asked.append((arguments, call_id))
        return False

    given = function_tool(tools.lines, needs_approval=approve)
    guarded: Any = guard_agent(Agent(name="agent", tools=[given]), guard).tools[0]
    found: Any = asyncio.run(evaluate_function_tool_approval(guarded, None, '{"count":1}', "c"))

    assert isinstance(guarded, FunctionTool)
    assert guarded.__wrapped__ is tools.lines
    assert asked == [({"count": 1}, "c")]
    assert found.prepared is not None


def test_an_exception_that_is_let_through_keeps_its_type(guard: Guard) -> None:
    tool = function_tool(tools.fail, failure_error_function=None)
    agent: Agent[Any] = Agent(name="agent", tools=[tool], model=scripted(call("fail", size=200_000)))
    try:
        outputs(guard_agent(agent, guard))
    except Exception as error:  # noqa: BLE001  (whatever the SDK makes of it)
        raised: BaseException = error.__cause__ or error

    assert isinstance(raised, ValueError)
    assert len(str(raised)) < 8_000


def test_reading_is_narrowed_to_the_group_of_the_run(guard: Guard, session: str) -> None:
    agent: Agent[Any] = Agent(name="agent", tools=[function_tool(tools.lines)])
    agent.model = scripted(call("lines", count=MANY), call("list_captures", "call_2"))
    _, listed = outputs(guard_agent(agent, guard), f"{session}-group")
    agent.model = scripted(call("list_captures"))
    (elsewhere,) = outputs(agent, f"{session}-other")

    assert "cap_" in listed.output
    assert "cap_" not in elsewhere.output


def test_directives_hold_for_the_session() -> None:
    metadata: dict[str, Any] = {}
    agent: Agent[Any] = Agent(name="agent", instructions="Be kind.", tools=[function_tool(tools.lines)])
    seen = []
    for message in ("/think /verbose why?", "and now?", "/think:off and now?"):
        model = scripted(call("lines", count=3))
        prompt, config = directed(message, metadata, RunConfig(tracing_disabled=True))
        result = asyncio.run(Runner.run(agent.clone(model=model), prompt, run_config=config))
        seen.append([each["content"] for each in model.calls[0].input])

    assert seen == [[THINK_PROMPT, "why?"], [THINK_PROMPT, "and now?"], ["and now?"]]
    assert answer(result, metadata).startswith("done\n- lines (about ")
    assert answer(result, {}) == "done"


class Odd:
    """An object of which no shorter copy can be made."""

    def __init__(self) -> None:
        self.rows = [tools.lines(MANY)]

    def __str__(self) -> str:
        return f"odd: {self.rows[0]}"


def numbers() -> Any:
    return (f"{number}\n" for number in range(MANY))


def odd() -> Any:
    return Odd()


def test_objects_and_generators_become_the_text_that_the_model_would_read(guard: Guard) -> None:
    agent: Agent[Any] = Agent(name="agent", tools=[function_tool(odd), function_tool(numbers)])
    agent.model = scripted(call("odd"), call("numbers", "call_2"))
    first, second = outputs(guard_agent(agent, guard))

    assert stored(guard, handle_in(first.raw_item["output"])).decode() == f"odd: {tools.lines(MANY)}"
    assert stored(guard, handle_in(second.output)).decode().startswith("0\n1\n")


def test_the_shell_of_a_sandbox_is_guarded(guard: Guard, session: str) -> None:
    agent = SandboxAgent[Any](name="agent", capabilities=[Shell()])
    agent.model = scripted(call("exec_command", cmd="seq 50000"))
    guard_agent(guard_agent(agent, guard), guard)
    (found,) = outputs(agent, session, sandbox=SandboxRunConfig(client=UnixLocalSandboxClient()))

    assert found.output.count("[overspill]") == 1
    assert b"\n50000" in stored(guard, handle_in(found.output))
    assert {"exec_command", "inspect_output"} <= {tool.name for tool in agent.model.calls[0].tools}


def test_agents_that_a_realtime_agent_hands_off_to_are_guarded(guard: Guard) -> None:
    last = RealtimeAgent[Any](name="last", tools=[function_tool(tools.lines)])
    middle = RealtimeAgent[Any](name="middle", handoffs=[last])
    guard_agent(RealtimeAgent[Any](name="first", handoffs=[middle]), guard)
    lines: Any = last.tools[0]
    context = ToolContext(None, tool_name="lines", tool_call_id="call_1", tool_arguments="")
    found = asyncio.run(lines.on_invoke_tool(context, f'{{"count": {MANY}}}'))

    assert "[overspill]" in found
    assert [tool.name for tool in last.tools] == ["lines", "inspect_output", "list_captures"]


def shared(child: Agent[Any]) -> Agent[Any]:
    return Agent(name="parent", handoffs=[handoff(child)])


def as_tool_of(child: Agent[Any]) -> Agent[Any]:
    return Agent(name="parent", tools=[child.as_tool("child", "Ask it.")])


@pytest.mark.parametrize(
    "parts",
    [
        {"tools": [function_tool(tools.lines)]},
        {"tools": [function_tool(tools.query, output_type=Rows)]},
        {"tools": [ShellTool(executor=lambda _: "done")]},
        {"mcp_servers": [MCPServerStdio({"command": "true"})]},
    ],
    ids=["function", "schema", "shell", "server"],
)
def test_a_part_of_an_agent_serves_no_agent_of_another_guard(guard: Guard, parts: Any) -> None:
    (name,) = parts
    first = guard_agent(Agent[Any](name="first", **parts), guard)
    second = Agent[Any](name="second", **{name: getattr(first, name)[:1]})
    with pytest.raises(ValueError, match="another guard has this agent"):
        guard_agent(second, Guard(spool=False))


@pytest.mark.parametrize("parent_of", [shared, as_tool_of])
def test_agents_of_two_guards_share_no_agent(guard: Guard, parent_of: Any) -> None:
    child: Agent[Any] = Agent(name="child", tools=[function_tool(tools.lines)])
    guard_agent(parent_of(child), guard)
    parent = parent_of(child)
    before = [*parent.tools, *parent.handoffs]
    with pytest.raises(ValueError, match="another guard has this agent, one that it can reach"):
        guard_agent(parent, Guard(spool=False))

    assert [*parent.tools, *parent.handoffs] == before


def test_tools_that_are_added_later_get_the_guard_of_their_agent(guard: Guard) -> None:
    model = scripted(call("lines", count=MANY))
    agent = guard_agent(Agent[Any](name="agent", model=model), guard)
    agent.tools.append(function_tool(tools.lines))
    (found,) = outputs(guard_agent(agent))

    assert "[overspill]" in found.output
    assert [name for name, _ in guard.stats] == ["lines"]
