"""A server of the MCP Python SDK, with the SDK's client as its model, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from mcp.client.client import Client
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, TextContent
from overspill.integrations.mcp_sdk import OverspillMiddleware

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


def picture(count: int) -> CallToolResult:
    """Return lines and a picture."""
    shown = ImageContent(data=png(), mime_type="image/png")
    return CallToolResult(content=[TextContent(text=lines(count)), shown])


class McpServers:
    page = "mcp-sdk.md"
    ways: ClassVar = ("auto", "legacy")
    limits: ClassVar[dict[str, str]] = {}
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
        server = MCPServer("kit", middleware=[] if guard is None else [OverspillMiddleware(guard)])
        return asyncio.run(conversation(way, with_tools(server, tools), turns))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {}
            exec(example, names)
            runs.append(asyncio.run(conversation("auto", with_tools(names["server"], tools), turns)))
        return runs


def with_tools(server: MCPServer, tools: Sequence[Any]) -> MCPServer:
    for each in tools:
        server.add_tool(_telling(each))
    return server


def _telling(tool: Any) -> Any:
    """Make a tool that tells the client what went wrong: the SDK keeps other exceptions to itself."""

    @functools.wraps(tool)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return tool(*args, **named)
        except Exception as error:
            raise ToolError(str(error)) from error

    return call


async def conversation(way: str, server: Any, turns: Sequence[Sequence[Call]]) -> Run:
    async with Client(server, mode=way) as client:
        return await asked(client, turns)


async def asked(client: Any, turns: Sequence[Sequence[Call]]) -> Run:
    """List the tools, and make the calls of each turn at once."""
    offered = [tool.name for tool in (await client.list_tools()).tools]
    results: dict[str, Result] = {}
    for turn in turns:
        found = await asyncio.gather(*(_call(client, call) for call in turn))
        results |= {call.id: result(each) for call, each in zip(turn, found, strict=True)}
    return Run(offered, results)


async def _call(client: Any, call: Call) -> CallToolResult:
    meta: dict[str, Any] = {"claudecode/toolUseId": call.id}
    if call.is_program:
        meta["caller"] = {"type": "code_execution"}
    found: CallToolResult = await client.call_tool(call.tool, dict(call.arguments), meta=meta)
    return found


def result(found: CallToolResult) -> Result:
    texts = [block.text for block in found.content if block.type == "text"]
    return Result(
        text="\n".join(texts),
        is_error=bool(found.is_error),
        images=sum(block.type == "image" for block in found.content),
        metadata=(found.meta or {}).get("overspill"),
        structured=found.structured_content,
    )


harness = McpServers()
