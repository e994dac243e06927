"""A client of the MCP Python SDK before a server that knows nothing of us, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from mcp.client.client import Client
from mcp.server import MCPServer
from overspill.integrations.mcp_sdk import guard_client

from tests.integrations.mcp_sdk.harness import asked, picture, with_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call, Run


class McpClients:
    page = "mcp-client.md"
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
        return asyncio.run(_conversation(way, tools, turns, guard))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        return [asyncio.run(_documented(example, tools, turns)) for example in examples]


async def _conversation(
    way: str, tools: Sequence[Any], turns: Sequence[Sequence[Call]], guard: Guard | None
) -> Run:
    async with Client(with_tools(MCPServer("kit"), tools), mode=way) as client:
        return await asked(client if guard is None else guard_client(client, guard), turns)


async def _documented(example: str, tools: Sequence[Any], turns: Sequence[Sequence[Call]]) -> Run:
    names: dict[str, Any] = {"server": with_tools(MCPServer("kit"), tools)}
    exec(example, names)
    async with names["client"] as client:
        return await asked(client, turns)


harness = McpClients()
