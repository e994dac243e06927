"""A server of FastMCP with its client as the model; in the way `client` it is the client that is guarded."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image
from overspill.integrations.fastmcp import OverspillMiddleware
from overspill.integrations.mcp_sdk import guard_client

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

CLIENT = "client"


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [lines(count), Image(data=PNG, format="png")]


class FastMcp:
    page = "fastmcp.md"
    ways: ClassVar = ("auto", "legacy", CLIENT)
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
        is_ours = guard is not None and way != CLIENT
        server = with_tools(FastMCP("kit", middleware=[OverspillMiddleware(guard)] if is_ours else []), tools)
        client = Client(server, mode="auto" if way == CLIENT else way)
        if guard is not None and way == CLIENT:
            client = guard_client(client, guard)
        return asyncio.run(asked(client, turns))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"url": with_tools(FastMCP("kit"), tools)}
            exec(example, names)
            client = names["client"] if "client" in names else Client(with_tools(names["server"], tools))
            runs.append(asyncio.run(asked(client, turns)))
        return runs


def with_tools(server: FastMCP[Any], tools: Sequence[Any]) -> FastMCP[Any]:
    for each in tools:
        server.tool(_telling(each))
    return server


def _telling(tool: Any) -> Any:
    """Make a tool that tells the client what went wrong."""

    @functools.wraps(tool)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return tool(*args, **named)
        except Exception as error:
            raise ToolError(str(error)) from error

    return call


async def asked(client: Client[Any], turns: Sequence[Sequence[Call]]) -> Run:
    """List the tools, and make the calls of each turn at once."""
    async with client:
        offered = [tool.name for tool in await client.list_tools()]
        results: dict[str, Result] = {}
        for turn in turns:
            found = await asyncio.gather(*(_call(client, call) for call in turn))
            results |= {call.id: each for call, each in zip(turn, found, strict=True)}
    return Run(offered, results)


async def _call(client: Client[Any], call: Call) -> Result:
    meta: dict[str, Any] = {"claudecode/toolUseId": call.id}
    if call.is_program:
        meta["caller"] = {"type": "code_execution"}
    found = await client.call_tool(call.tool, dict(call.arguments), meta=meta, raise_on_error=False)
    texts = [block.text for block in found.content if block.type == "text"]
    return Result(
        text="\n".join(texts),
        is_error=found.is_error,
        images=sum(block.type == "image" for block in found.content),
        metadata=(found.meta or {}).get("overspill"),
        structured=found.structured_content,
    )


harness = FastMcp()
