"""Cases for Copilot alone: its own tools, its program, a session's options, the user's own hooks."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from copilot import SessionEvent, Tool, ToolSet
from copilot.session_events import SessionMcpServersLoadedData
from overspill import Guard
from overspill.integrations.agent_programs.programs import COPILOT_CLI
from overspill.integrations.copilot_sdk import guarded_session

from tests.integrations.copilot_sdk.harness import SECONDS, conversation, own_tool, read, usual
from tests.integrations.copilot_sdk.runtime import FOLDER, runtime
from tests.integrations.copilot_sdk.scripted_api import ScriptedApi
from tests.integrations.kit import tools
from tests.integrations.kit.cases import MANY, handle_in, stored
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call

__all__ = ["guard", "session"]

SERVER = Path(__file__).parents[1] / "kit" / "mcp_server.py"
READING = ["inspect_output", "list_captures"]


def test_outputs_of_shells_are_stored_whole_and_hooks_of_ones_own_see_them_whole(
    guard: Guard, session: str
) -> None:
    seen: list[Any] = []

    async def theirs(called: Any, _: Any) -> None:
        seen.append((called["toolName"], called["toolResult"]["textResultForLlm"]))

    def options(api: ScriptedApi) -> dict[str, Any]:
        return guarded_session(guard, **usual(api, session), hooks={"on_post_tool_use": theirs})

    commands = [f"seq 1 {MANY}", f"seq 2 {MANY}; exit 3"]
    calls = [
        Call("bash", {"command": command, "description": "Count."}, f"call_{number}")
        for number, command in enumerate(commands)
    ]
    results = asyncio.run(conversation([[each] for each in calls], options)).results

    for number, call in enumerate(calls):
        whole = "".join(f"{each}\n" for each in range(number + 1, MANY + 1))
        text = results[call.id].text
        assert text.startswith(f"[overspill] Output of bash ({call.id}) too long")
        assert stored(guard, handle_in(text)).decode().startswith(whole)
        assert seen[number][0] == "bash"
        assert seen[number][1].startswith(whole)


def test_the_program_itself_is_guarded_by_its_hook(guard: Guard, tmp_path: Path) -> None:
    hook = f"{shlex.quote(sys.executable)} -m overspill hook copilot-cli"
    (tmp_path / "settings.json").write_text(json.dumps(COPILOT_CLI.with_hook({}, hook)))
    call = Call("bash", {"command": f"seq 1 {MANY}", "description": "Count."}, "call_1")

    async def run() -> list[dict[str, Any]]:
        async with ScriptedApi([[call]]).serving() as api:
            variables = {
                **os.environ,
                "HOME": str(FOLDER),
                "COPILOT_HOME": str(tmp_path),
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": api.url,
                "COPILOT_MODEL": "gpt-4.1",
            }
            words = [runtime(), "-p", "go", "--allow-all-tools"]
            program = await asyncio.create_subprocess_exec(*words, env=variables, cwd=tmp_path, stdout=-3)
            await asyncio.wait_for(program.wait(), SECONDS)
            return read(api)

    (result,) = asyncio.run(run())

    assert result["content"].startswith("[overspill] Output of bash too long")
    whole = "".join(f"{each}\n" for each in range(1, MANY + 1))
    assert stored(guard, handle_in(result["content"])).decode().startswith(whole)


def test_results_of_mcp_servers_are_guarded(guard: Guard, session: str) -> None:
    loaded = asyncio.Event()

    def listen(event: SessionEvent) -> None:
        if isinstance(event.data, SessionMcpServersLoadedData):
            loaded.set()

    server = {"type": "stdio", "command": sys.executable, "args": [str(SERVER)], "tools": ["*"]}

    def options(api: ScriptedApi) -> dict[str, Any]:
        return guarded_session(guard, **usual(api, session), mcp_servers={"kit": server}, on_event=listen)

    calls = [Call("bash", {"command": "true", "description": "Wait."}, "call_1")]
    calls += [Call("kit-lines", {"count": MANY}, "call_2")]
    result = asyncio.run(conversation([[each] for each in calls], options, loaded)).results["call_2"]

    assert result.text.startswith("[overspill] Output of kit-lines (call_2) too long")
    assert stored(guard, handle_in(result.text)).decode().startswith(tools.lines(MANY))


def test_what_a_hook_of_ones_own_returns_is_guarded(guard: Guard, session: str) -> None:
    def theirs(_called: Any, _context: Any) -> dict[str, Any]:
        return {"modifiedResult": {"textResultForLlm": tools.lines(MANY)}, "additionalContext": "more"}

    hook = guarded_session(guard, hooks={"on_post_tool_use": theirs})["hooks"]["on_post_tool_use"]
    called = {"toolName": "bash", "toolArgs": {}, "toolResult": {"textResultForLlm": "short"}}
    answer = asyncio.run(hook({**called, "sessionId": session}, {}))

    assert answer["additionalContext"] == "more"
    text = answer["modifiedResult"]["textResultForLlm"]
    assert stored(guard, handle_in(text)).decode() == tools.lines(MANY)


def test_a_call_that_is_tried_again_has_its_own_id(guard: Guard, session: str) -> None:
    tries: list[int] = []

    def lines(count: int) -> str:
        tries.append(count)
        if len(tries) == 1:
            raise OSError("try again")
        return tools.lines(count)

    def options(api: ScriptedApi) -> dict[str, Any]:
        return guarded_session(guard, **usual(api, session), tools=[own_tool(lines)])

    calls = [Call("lines", {"count": MANY}, name) for name in ("call_1", "call_2")]
    results = asyncio.run(conversation([[each] for each in calls], options)).results

    assert results["call_1"].text == "try again"
    assert results["call_2"].text.startswith("[overspill] Output of lines (call_2) too long")


def test_the_options_of_a_session_stay(guard: Guard) -> None:
    async def theirs(*_: Any) -> None:
        return None

    tool = own_tool(tools.lines)
    given = {
        "model": "gpt-5",
        "tools": [tool],
        "hooks": {"on_session_start": theirs},
        "available_tools": ["builtin:bash"],
        "large_output": {"output_directory": "here"},
    }
    made = guarded_session(guard, **given)

    assert made["model"] == "gpt-5"
    assert [each.name for each in made["tools"]] == ["lines", *READING]
    assert made["hooks"]["on_session_start"] is theirs
    assert made["available_tools"] == ["builtin:bash", *READING]
    assert made["large_output"] == {"output_directory": "here", "enabled": False}
    assert given["tools"] == [tool]
    assert guarded_session(guard, **made) == made


def test_the_tools_that_read_are_added_to_a_set_of_tools(guard: Guard) -> None:
    made = guarded_session(guard, available_tools=ToolSet().add_builtin("bash"))

    assert made["available_tools"] == ["builtin:bash", *READING]


def test_a_tool_of_ones_own_called_inspect_output_keeps_its_name(guard: Guard) -> None:
    own = Tool("inspect_output", "Inspect.")
    made = guarded_session(guard, tools=[own])

    assert made["tools"][0] is own
    assert [each.name for each in made["tools"]] == READING


def test_options_of_another_guard_are_refused(guard: Guard) -> None:
    made = guarded_session(guard)
    with pytest.raises(ValueError, match="another guard has this agent"):
        guarded_session(Guard(spool=False), **made)
