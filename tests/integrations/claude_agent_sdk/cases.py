"""Cases for Claude Code alone: its own tools, whose results have their own shapes, and its files."""

from __future__ import annotations

import asyncio
import base64
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, create_sdk_mcp_server, tool
from overspill import Guard, SyncClient
from overspill.integrations.claude_agent_sdk import guarded_options

from tests.integrations.claude_agent_sdk.harness import isolated, messages, results, scripted
from tests.integrations.kit import tools
from tests.integrations.kit.cases import MANY, handle_in, stored
from tests.integrations.kit.fixtures import guard, session
from tests.integrations.kit.harness import Call, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["guard", "session"]


def run(
    guard: Guard, home: Path, session: str, *calls: Call, **more: Any
) -> tuple[dict[str, Result], Sequence[dict[str, Any]]]:
    """Return what the model read, and the requests that Claude Code made."""
    home.mkdir(exist_ok=True)
    with scripted([[call] for call in calls]) as api:
        options = guarded_options(isolated(api, str(home), session, **more), guard)
        return results(asyncio.run(messages("async", options))), api.requests


def test_all_of_a_shells_output_is_in_the_capture_though_claude_code_has_cut_it(
    guard: Guard, tmp_path: Path, session: str
) -> None:
    command = Call("Bash", {"command": f"seq 1 {MANY * 3}", "description": "Count."}, "call_1")
    found, requests = run(guard, tmp_path, session, command)
    (result,) = found.values()
    sent = str(requests[-1]["messages"])

    assert stored(guard, handle_in(result.text)).decode() == "".join(f"{n}\n" for n in range(1, MANY * 3 + 1))
    assert result.text.startswith("[overspill]")
    assert result.metadata is not None
    assert result.metadata["total_lines"] == MANY * 3
    assert "persisted-output" not in sent
    assert "shown_bytes" not in sent


def test_a_file_that_is_read_keeps_the_shape_of_the_tool(guard: Guard, tmp_path: Path, session: str) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{'row ' * 15}{number}\n" for number in range(1_000)))
    found, _ = run(guard, tmp_path, session, Call("Read", {"file_path": str(path)}, "call_1"))
    (result,) = found.values()

    assert result.text.startswith("1\t[overspill]")
    assert stored(guard, handle_in(result.text)).decode() == path.read_text()
    assert result.metadata is not None


def test_the_model_is_told_how_to_get_the_output_of_a_failed_command_that_was_cut(
    guard: Guard, tmp_path: Path, session: str
) -> None:
    command = Call("Bash", {"command": f"seq 1 {MANY * 3}; exit 3", "description": "Count."}, "call_1")
    _, requests = run(guard, tmp_path, session, command)
    (result,) = requests[-1]["messages"][-1]["content"]
    advice = result["content"].partition("notice: ")[2].partition("\n</system-reminder>")[0]
    again = subprocess.run(shlex.split(advice), capture_output=True, text=True, check=False)

    assert again.returncode == 3
    whole = "".join(f"{n}\n" for n in range(1, MANY * 3 + 1))
    assert stored(guard, handle_in(again.stdout)).decode() == whole


def test_a_picture_of_an_mcp_tool_stays_beside_the_notice(guard: Guard, tmp_path: Path, session: str) -> None:
    @tool("look", "Look.", {})
    async def look(_: Any) -> dict[str, Any]:
        picture = {"type": "image", "data": base64.b64encode(tools.PNG).decode(), "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": tools.lines(MANY)}, picture]}

    servers = {"kit": create_sdk_mcp_server("kit", tools=[look])}
    found, requests = run(guard, tmp_path, session, Call("look", {}, "call_1"), mcp_servers=servers)
    (result,) = found.values()

    assert result.images == 1
    assert stored(guard, handle_in(result.text)).decode() == tools.lines(MANY)
    assert "_meta" not in str(requests[-1]["messages"])


def test_each_conversation_lists_its_own_captures(guard: Guard, tmp_path: Path, session: str) -> None:
    counted = Call("Bash", {"command": f"seq 1 {MANY * 3}", "description": "Count."}, "call_1")
    listed = Call("list_captures", {}, "call_2")
    here, _ = run(guard, tmp_path / "a", session, counted, listed)
    there, _ = run(guard, tmp_path / "b", f"{session}-other", listed)

    assert handle_in(here["call_1"].text) in here["call_2"].text
    assert '"captures": []' in there["call_2"].text


def test_the_tools_that_read_say_how_long_their_answers_may_be(
    guard: Guard, tmp_path: Path, session: str
) -> None:
    spilled, _ = run(
        guard,
        tmp_path,
        session,
        Call("Bash", {"command": "seq -f '%060g' 1 4000", "description": "Count."}, "call_1"),
    )
    capture = handle_in(spilled["call_1"].text)
    asked = Call("inspect_output", {"capture": capture, "lines": "600", "max_chars": 40_000}, "call_2")
    found, _ = run(guard, tmp_path / "again", f"{session}-again", asked)

    assert len(found["call_2"].text) > 30_000
    assert "persisted-output" not in found["call_2"].text
    assert re.search(r"0{50}600", found["call_2"].text)


def test_hooks_servers_and_tools_of_the_options_stay(guard: Guard) -> None:
    async def theirs(*_: Any) -> dict[str, Any]:
        return {}

    matcher = HookMatcher("Bash", [theirs])
    given = ClaudeAgentOptions(
        allowed_tools=["Bash"], hooks={"PostToolUse": [matcher]}, mcp_servers={"kit": {"command": "true"}}
    )
    made = guarded_options(given, guard)

    assert made.hooks is not None
    assert made.hooks["PostToolUse"][0] is matcher
    assert len(made.hooks["PostToolUse"]) == 2
    assert set(made.mcp_servers) == {"kit", "overspill"}
    assert made.allowed_tools[0] == "Bash"
    assert len(given.hooks["PostToolUse"]) == 1
    assert guarded_options(made, guard) is made


def test_servers_in_a_file_are_refused_with_a_reason(guard: Guard) -> None:
    with pytest.raises(TypeError, match="mcp_servers must be a dict"):
        guarded_options(ClaudeAgentOptions(mcp_servers="servers.json"), guard)


def test_without_a_service_a_shells_output_is_cut_and_says_so(tmp_path: Path, session: str) -> None:
    client = SyncClient("http://127.0.0.1:1", session=session, retries=0, connect_timeout=0.2)
    with client, Guard(client, spool=False) as guard:
        command = Call("Bash", {"command": f"seq 1 {MANY * 3}", "description": "Count."}, "call_1")
        found, _ = run(guard, tmp_path, session, command)

    assert "NOT STORED" in found["call_1"].text
    assert len(found["call_1"].text) < 16_000


def test_options_of_another_guard_are_refused(guard: Guard) -> None:
    made = guarded_options(ClaudeAgentOptions(), guard)
    with pytest.raises(ValueError, match="another guard has this agent"):
        guarded_options(made, Guard(spool=False))
