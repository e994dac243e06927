"""The Claude Agent SDK with the Claude Code that it brings along, before a scripted API on this machine."""

from __future__ import annotations

import asyncio
import json
import uuid
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from overspill.integrations.claude_agent_sdk import guarded_options

from tests.integrations.claude_agent_sdk.scripted_api import ScriptedApi
from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

READING = {"inspect_output", "list_captures", "get_terminal_output"}


def picture(count: int) -> dict[str, Any]:
    """Return lines and a picture, as an MCP server does."""
    shown = {"type": "image", "data": png(), "mimeType": "image/png"}
    return {"content": [{"type": "text", "text": lines(count)}, shown]}


class ClaudeAgentSdk:
    page = "claude-agent-sdk.md"
    ways: ClassVar = ("async", "stream")
    limits: ClassVar = {
        "a_long_error_stays_an_error": "Claude Code lets no hook replace the message of a failure. It cuts"
        " the message to 10,000 characters itself",
        "code_that_calls_a_tool_gets_the_whole": "Claude Code tells hooks not who calls a tool",
    }
    names_calls = True
    picture = staticmethod(picture)

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        with scripted(turns) as api, TemporaryDirectory() as home:
            options = isolated(api, home, session, mcp_servers={"kit": server(tools)})
            if guard is not None:
                options = guarded_options(options, guard)
            found = results(asyncio.run(messages(way, options)))
        return Run([each["name"].rpartition("__")[2] for each in api.requests[0]["tools"]], found)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            with scripted(turns) as api, TemporaryDirectory() as home:
                options = isolated(api, home, session, mcp_servers={"kit": server(tools)})
                names: dict[str, Any] = {"options": options}
                exec(example, names)
                runs.append(Run([], results(asyncio.run(messages("async", names["options"])))))
        return runs


def scripted(turns: Sequence[Sequence[Call]]) -> ScriptedApi:
    return ScriptedApi([[block(call) for call in turn] for turn in turns])


def isolated(api: ScriptedApi, home: str, session: str, **more: Any) -> ClaudeAgentOptions:
    """Return options for a Claude Code that knows nothing of this machine but the scripted API."""
    env = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.port}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": home,
        "CLAUDE_CODE_TMPDIR": home,
        "HOME": home,
        "IS_SANDBOX": "1",
    }
    return ClaudeAgentOptions(
        model="claude-sonnet-4-5",
        session_id=str(uuid.uuid5(uuid.NAMESPACE_URL, session)),
        permission_mode="bypassPermissions",
        setting_sources=[],
        cwd=home,
        env=env,
        **more,
    )


def server(tools: Sequence[Any]) -> Any:
    """Return a server in this process with these functions as tools, which the model need not search for."""
    return {**create_sdk_mcp_server("kit", tools=[_tool(each) for each in tools]), "alwaysLoad": True}


def _tool(function: Any) -> Any:
    schema = {"type": "object", "properties": {"count": {}, "rows": {}, "size": {}}}

    @tool(function.__name__, function.__doc__ or "", schema)
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        result = function(**arguments)
        if isinstance(result, dict) and "content" in result:
            return result
        text = result if isinstance(result, str) else json.dumps(result)
        return {"content": [{"type": "text", "text": text}]}

    return call


def block(call: Call) -> dict[str, Any]:
    """Return one call of the model."""
    own = "overspill" if call.tool in READING else "kit"
    name = call.tool if call.tool[0].isupper() else f"mcp__{own}__{call.tool}"
    return {"type": "tool_use", "id": call.id, "name": name, "input": dict(call.arguments)}


async def messages(way: str, options: ClaudeAgentOptions) -> list[Any]:
    if way == "async":
        return [each async for each in query(prompt="go", options=options)]
    async with ClaudeSDKClient(options) as client:
        await client.query("go")
        return [each async for each in client.receive_response()]


def results(found: Sequence[Any]) -> dict[str, Result]:
    users = [each for each in found if isinstance(each, UserMessage) and isinstance(each.content, list)]
    return {
        part.tool_use_id: _result(part, each.tool_use_result)
        for each in users
        for part in each.content
        if isinstance(part, ToolResultBlock)
    }


def _result(part: ToolResultBlock, shown: Any) -> Result:
    parts: Any = [{"text": part.content}] if isinstance(part.content, str) else part.content or []
    if isinstance(shown, list) and shown:
        shown = shown[0].get("_meta")
    return Result(
        text="\n".join(each.get("text", "") for each in parts),
        is_error=bool(part.is_error),
        images=sum(each.get("type") == "image" for each in parts),
        metadata=shown.get("overspill") if isinstance(shown, dict) else None,
    )


harness = ClaudeAgentSdk()
