"""Claude Agent SDK: a hook that guards every tool of Claude Code, and a server with the tools that read.

async with ClaudeSDKClient(guarded_options(ClaudeAgentOptions(model="…"))) as client: …
"""

from __future__ import annotations

import dataclasses
import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, McpSdkServerConfig
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from overspill.agent_tools.inspect_request import MAX_CHARS
from overspill.guard.guard import Guard
from overspill.integrations.adapter import Adapter, adapter_for
from overspill.integrations.agent_programs.claude_failures import EVENT as FAILED
from overspill.integrations.agent_programs.claude_failures import SHELL, after_failure
from overspill.integrations.claude_code import post_tool_use_async
from overspill.integrations.host_policy import host_policy
from overspill.reading.latest import Latest
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool

SERVER: Final = "overspill"
"""The name of the server with the tools that read. Claude Code calls its tools `mcp__overspill__…`."""
_MAX_REMEMBERED: Final = 1_000


def guarded_options(
    options: ClaudeAgentOptions | None = None, guard: Guard | None = None
) -> ClaudeAgentOptions:
    """Return the options with every tool guarded, and with `inspect_output` and `list_captures`.

    The session of a capture is that of Claude Code. What the model did not see is in the capture, even where
    Claude Code has cut a shell's output before. `tool_use_result` of a `UserMessage` has `Guarded.metadata`.
    Without `guard` it makes one for the service that `OVERSPILL_URL` and `OVERSPILL_KEY` name.

    Raises `TypeError` if `mcp_servers` is a file: a server in this process cannot be added to it. Raises
    `ValueError` if the options have another guard.
    """
    given_options = ClaudeAgentOptions() if options is None else options
    if not isinstance(given_options.mcp_servers, dict):
        raise TypeError("mcp_servers must be a dict, so that the tools that read captures can be added")
    adapters = _adapters(given_options)
    if adapters:
        adapter_for(guard, adapters)
        return given_options
    if guard is None:
        guard = Guard(SyncClient(), host_policy("claude-code"))
    hooks = _Hooks(Adapter(guard))
    theirs: dict[Any, list[HookMatcher]] = dict(given_options.hooks or {})
    theirs["PreToolUse"] = [*theirs.get("PreToolUse", []), HookMatcher(f"mcp__{SERVER}__.*", [hooks.begin])]
    theirs["PostToolUse"] = [*theirs.get("PostToolUse", []), HookMatcher(None, [hooks.end])]
    if find_spec("click"):  # `overspill run` needs the extra `cli`
        theirs[FAILED] = [*theirs.get(FAILED, []), HookMatcher(SHELL, [hooks.fail])]
    reading = [f"mcp__{SERVER}__{tool.name}" for tool in hooks.adapter.reading_tools]
    return dataclasses.replace(
        given_options,
        hooks=theirs,
        mcp_servers={SERVER: hooks.server(), **given_options.mcp_servers},
        allowed_tools=[*given_options.allowed_tools, *reading],
    )


def _adapters(options: ClaudeAgentOptions) -> list[Adapter]:
    """Return the adapter of options that are guarded already."""
    matchers = (options.hooks or {}).get("PostToolUse", [])
    owners = (getattr(hook, "__self__", None) for matcher in matchers for hook in matcher.hooks)
    return [owner.adapter for owner in owners if isinstance(owner, _Hooks)]


@dataclasses.dataclass
class _OwnCall:
    """A call of a reading tool. Of its session the server of the tools is told nothing but the call's id."""

    session: str | None
    is_answered: bool = False


class _Hooks:
    """The hooks of one agent, and the server of the tools that read."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._calls: Latest[str, _OwnCall] = Latest(_MAX_REMEMBERED)

    async def begin(self, called: Any, call_id: str | None, _: Any) -> dict[str, Any]:
        """Remember in which session a tool that reads is called."""
        if call_id is not None:
            self._calls[call_id] = _OwnCall(called.get("session_id"))
        return {}

    async def end(self, called: Any, call_id: str | None, _: Any) -> dict[str, Any]:
        """Answer with what the model sees of a result, if that is shorter. An answer of ours stays."""
        own = self._calls.pop(call_id or "", None)
        if own is not None and own.is_answered:
            return {}
        return await post_tool_use_async(self.adapter.guard, called)

    async def fail(self, called: Any, *_: Any) -> dict[str, Any]:
        """Answer with how to get all of a failed command's output, if Claude Code has cut it."""
        return after_failure(called)

    def server(self) -> McpSdkServerConfig:
        """Return the server. Claude Code must not hide its tools until the model searches for them."""
        tools = {tool.name: tool for tool in self.adapter.reading_tools}

        async def list_tools(*_: Any) -> ListToolsResult:
            return ListToolsResult(tools=[_wire_tool(tool) for tool in tools.values()])

        async def call_tool(_: Any, call: Any) -> CallToolResult:
            own = self._calls.get((call.meta or {}).get("claudecode/toolUseId", ""), _OwnCall(None))
            own.is_answered = True
            answer = await tools[call.name].acall(call.arguments, session=own.session)
            text = TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
            return CallToolResult(content=[text], is_error="error" in answer)

        server = Server(SERVER, on_list_tools=list_tools, on_call_tool=call_tool)
        config: Any = {"type": "sdk", "name": SERVER, "instance": server, "alwaysLoad": True}
        return config


def _wire_tool(tool: AgentTool) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": dict(tool.parameters),
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
            "_meta": {"anthropic/maxResultSizeChars": MAX_CHARS, "anthropic/alwaysLoad": True},
        }
    )
