"""Servers of the MCP SDK: names, schemas and sessions, which only a server has."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from mcp import types
from mcp.client.client import Client
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from overspill import Guard, SyncClient
from overspill.integrations.mcp_sdk import OverspillMiddleware, guard_client

from tests.integrations.kit import tools
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]


@pytest.fixture
def guard(request: pytest.FixtureRequest) -> Iterator[Guard]:
    with SyncClient(URL, session=f"mcp-{request.node.name}") as client, Guard(client, spool=False) as made:
        yield made


def inspect_output(count: int) -> list[str]:
    """Return rows: a tool with the name of ours."""
    return [f"row {number} of the server's own tool" for number in range(count)]


def server(guard: Guard, *functions: Any, **options: Any) -> MCPServer:
    made = MCPServer("kit", middleware=[OverspillMiddleware(guard, **options)])
    for function in functions:
        made.add_tool(function)
    return made


async def asks(made: Any, mode: str, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[Any]:
    async with Client(made, mode=mode, **options) as client:
        return [await client.call_tool(name, arguments) for name, arguments in calls]


def handle(result: Any) -> str:
    capture: str = result.meta["overspill"]["capture"]
    return capture


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_tool_of_the_server_keeps_its_name_even_if_nobody_listed(guard: Guard, mode: str) -> None:
    made = server(guard, inspect_output)
    small, large = asyncio.run(
        asks(made, mode, ("inspect_output", {"count": 2}), ("inspect_output", {"count": 9_000}))
    )
    capture = handle(large)
    [read] = asyncio.run(
        asks(made, mode, ("overspill_inspect_output", {"capture": capture, "mode": "tail", "lines": 3}))
    )

    assert small.structured_content == {"result": inspect_output(2)}
    assert large.meta["overspill"]["read_with"]["tool"] == "overspill_inspect_output"
    texts = "".join(block.text for block in large.content)
    assert 'overspill_inspect_output("cap_' in texts
    assert len(texts) < 50_000
    assert "row 8999" in read.content[0].text


@pytest.mark.parametrize("drops", [True, False])
def test_a_client_that_checks_schemas_takes_every_result(guard: Guard, drops: bool) -> None:
    made = server(guard, inspect_output, tools.query, drops_schemas=drops)

    async def listed() -> list[types.Tool]:
        async with Client(made) as client:
            return (await client.list_tools()).tools

    schemas = [tool.output_schema for tool in asyncio.run(listed())[:2]]
    [rows, query] = asyncio.run(
        asks(made, "auto", ("inspect_output", {"count": 9_000}), ("query", {"rows": 5_000}))
    )

    assert (schemas == [None, None]) is drops
    assert len(str(rows.structured_content)) < 60_000
    assert query.structured_content["count"] == 5_000


def test_the_tools_that_the_user_names_stay_whole(guard: Guard) -> None:
    [lines] = asyncio.run(
        asks(server(guard, tools.lines, whole=["lines"]), "auto", ("lines", {"count": 9_000}))
    )

    assert lines.content[0].text == tools.lines(9_000)


def test_a_client_whose_program_cuts_gets_less(guard: Guard) -> None:
    cline = types.Implementation(name="Cline", version="3")
    made = server(guard, tools.lines)
    [known] = asyncio.run(asks(made, "auto", ("lines", {"count": 1_200}), client_info=cline))
    [unknown] = asyncio.run(asks(made, "auto", ("lines", {"count": 1_200})))

    assert "[overspill]" in known.content[0].text
    assert "[overspill]" not in unknown.content[0].text


def test_a_low_level_server_takes_the_same_middleware(guard: Guard) -> None:
    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="lines", input_schema={"type": "object"})])

    async def call_tool(_: Any, __: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=tools.lines(9_000))])

    made = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
    made.middleware.append(OverspillMiddleware(guard))
    [lines] = asyncio.run(asks(made, "auto", ("lines", {})))

    assert "[overspill]" in lines.content[0].text


@contextmanager
def over_http(made: MCPServer) -> Iterator[str]:
    port = free_port()
    serving = uvicorn.Server(
        uvicorn.Config(
            made.streamable_http_app(), "127.0.0.1", port, log_level="error", timeout_graceful_shutdown=1
        )
    )
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        while not serving.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        serving.should_exit = True
        thread.join()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_over_http_list_no_captures_of_each_other(guard: Guard, mode: str) -> None:
    async def both(url: str) -> tuple[Any, Any, Any, Any]:
        async with Client(url, mode=mode) as one, Client(url, mode=mode) as other:
            capture = handle(await one.call_tool("lines", {"count": 9_000}))
            read = {"capture": capture, "mode": "tail", "lines": 3}
            return (
                capture,
                await one.call_tool("list_captures", {}),
                await other.call_tool("list_captures", {}),
                await other.call_tool("inspect_output", read),
            )

    with over_http(server(guard, tools.lines)) as url:
        capture, own, others, read = asyncio.run(both(url))

    assert (capture in own.content[0].text) is (mode == "legacy")  # the current revision has no sessions
    assert capture not in others.content[0].text
    assert "line 8999" in read.content[0].text


def test_a_guarded_client_before_a_server_with_a_tool_of_our_name(guard: Guard) -> None:
    made = MCPServer("kit")
    made.add_tool(inspect_output)

    async def asked() -> tuple[list[str], Any, Any]:
        async with Client(made) as client:
            guarded = guard_client(client, guard)
            names = [tool.name for tool in (await guarded.list_tools()).tools]
            large = await guarded.call_tool("inspect_output", {"count": 9_000})
            read = {"capture": handle(large), "mode": "tail", "lines": 3}
            return names, large, await guarded.call_tool("overspill_inspect_output", read)

    names, large, read = asyncio.run(asked())

    assert names == ["inspect_output", "overspill_inspect_output", "list_captures"]
    assert isinstance(large.structured_content["result"], list)
    assert "row 8999" in read.content[0].text


def test_a_client_that_is_guarded_stays_and_refuses_another_guard(guard: Guard) -> None:
    made = MCPServer("kit")
    made.add_tool(tools.lines)

    async def asked() -> tuple[list[str], Any]:
        async with guard_client(guard_client(Client(made), guard), whole=["lines"]) as client:
            with pytest.raises(ValueError, match="another guard has this agent"):
                guard_client(client, Guard(spool=False))
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, await client.call_tool("lines", {"count": 9_000})

    names, result = asyncio.run(asked())

    assert names == ["lines", "inspect_output", "list_captures"]
    assert result.content[0].text == tools.lines(9_000)
