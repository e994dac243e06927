"""`overspill mcp`: the tools and the resources, as the official client and others see them."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from mcp import StdioServerParameters, types
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from overspill.guard.guard import Guard
from overspill.mcp.rendering import MAX_RESULT_CHARS
from overspill.mcp.server.resources import NOT_FOUND
from overspill.mcp.server.server import server
from overspill.transfer.sync import SyncClient

from tests.client.shell import OVERSPILL
from tests.servers.launcher import Launcher
from tests.servers.overspill import clean_environment
from tests.servers.ports import free_port
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess

SDK: Final = Launcher("tests.mcp.sdk_server")
"""A server made with the official SDK."""
TEXT: Final = "".join(f"line {number} of the log\n" for number in range(1, 9_001))


@pytest.fixture
def guard(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[Guard]:
    client = SyncClient(service.url, session=f"mcp-{request.node.name}")
    with client, Guard(client, spool=False) as guard:
        yield guard


def stored(guard: Guard, text: str = TEXT) -> str:
    capture = guard.process_sync(text, tool="build", call_id="call_1").capture
    assert capture is not None
    return capture


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_lists_and_greps_captures(guard: Guard, mode: str) -> None:
    capture = stored(guard)
    async with Client(server(guard), mode=mode) as client:
        tools = (await client.list_tools()).tools
        listed = await client.call_tool("list_captures", {})
        found = await client.call_tool(
            "inspect_output", {"capture": f"[{capture}]", "mode": "GREP", "pattern": "line 4321 "}
        )

    assert [tool.name for tool in tools] == ["inspect_output", "list_captures", "get_terminal_output"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.meta is not None
        assert tool.meta[MAX_RESULT_CHARS] == 40_000
    assert any(getattr(block, "uri", None) == f"overspill://{capture}" for block in listed.content)
    assert found.structured_content is not None
    assert "4321:line 4321" in found.structured_content["content"]
    assert json.loads(found.content[0].text) == found.structured_content  # type: ignore[union-attr]  # a text


async def test_an_error_is_a_result_that_says_what_to_do(guard: Guard) -> None:
    async with Client(server(guard)) as client:
        answer = await client.call_tool("inspect_output", {"capture": "the log"})

        assert answer.is_error
        assert "a handle is" in answer.content[0].text  # type: ignore[union-attr]  # a text
        with pytest.raises(MCPError, match="there are inspect_output"):
            await client.call_tool("invented", {})


async def test_captures_are_resources(guard: Guard) -> None:
    captures = {stored(guard, f"{number} {TEXT}") for number in range(3)}
    uri = f"overspill://{next(iter(captures))}"
    async with Client(server(guard)) as client:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        parts = [
            await client.read_resource(uri + part)
            for part in ("", "/tail/2", "/lines/5/6", "/grep/line%204321%20of")
        ]

    texts: list[Any] = [part.contents[0] for part in parts]
    assert {each.name for each in listed} == captures
    assert len(templates) == 4
    assert 10_000 < len(texts[0].text) < 20_000
    assert texts[1].text == "line 8999 of the log\nline 9000 of the log\n"
    assert texts[2].text == "line 5 of the log\nline 6 of the log\n"
    assert "4321:line 4321" in texts[3].text
    assert texts[0].meta["overspill"]["next"]


async def test_many_captures_are_listed_in_pages(guard: Guard) -> None:
    captures = {stored(guard, f"{number} {TEXT}") for number in range(53)}
    async with Client(server(guard)) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)

    assert {each.name for page in (first, second) for each in page.resources} == captures
    assert second.next_cursor is None


@pytest.mark.parametrize(
    ("uri", "code", "says"),
    [
        ("overspill://", types.INVALID_PARAMS, "not an address of a capture"),
        ("file:///etc/passwd", types.INVALID_PARAMS, "not an address of a capture"),
        ("overspill://the-log", types.INVALID_PARAMS, "a handle is"),
        ("overspill://cap_aaaaaaaaaaaaaaaaaaaa", NOT_FOUND, "Check the handle"),
    ],
)
async def test_a_resource_that_is_not_there_is_an_error(guard: Guard, uri: str, code: int, says: str) -> None:
    async with Client(server(guard), mode="legacy") as client:
        with pytest.raises(MCPError, match=says) as caught:
            await client.read_resource(uri)

    assert caught.value.code == code


async def test_the_command_speaks_to_the_official_client(service: ServiceProcess) -> None:
    with SyncClient(service.url, session="mcp-stdio") as client, Guard(client) as guard:
        capture = stored(guard)
    environment = {**clean_environment(), "OVERSPILL_URL": service.url, "OVERSPILL_SESSION": "mcp-stdio"}
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "overspill", "mcp"], env=environment
    )
    async with Client(stdio_client(parameters)) as agent:
        answer = await agent.call_tool("list_captures", {})

    assert answer.structured_content is not None
    assert [row["capture"] for row in answer.structured_content["captures"]] == [capture]


@contextmanager
def over_http(service: ServiceProcess) -> Iterator[str]:
    """The address of a server over HTTP."""
    host = f"127.0.0.1:{free_port()}"
    environment = {**clean_environment(), "OVERSPILL_URL": service.url}
    with OVERSPILL.piped(["mcp", "--http", host], environment, seconds=60) as server:
        assert until(lambda: status(f"http://{host}/") == 404)
        yield f"http://{host}/mcp"
        server.process.terminate()
        server.process.wait(60)


def status(url: str, **headers: str) -> int:
    """The status of a POST; 0 if nobody listens."""
    asked = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except urllib.error.URLError:
        return 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_the_official_client_works_directly_and_through_the_proxy(
    service: ServiceProcess, mode: str
) -> None:
    with over_http(service) as url:
        async with Client(url, mode=mode) as client:
            answer = await client.call_tool("list_captures", {})
        program, *arguments = OVERSPILL.command("mcp-proxy", "--url", url)
        environment = {**clean_environment(), "OVERSPILL_URL": service.url}
        parameters = StdioServerParameters(command=program, args=arguments, env=environment)
        async with Client(stdio_client(parameters), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            passed = await client.call_tool("list_captures", {})
            page = await client.list_resource_templates()

    assert not answer.is_error
    assert names == [
        "inspect_output",
        "list_captures",
        "get_terminal_output",
        "overspill_inspect_output",
        "overspill_list_captures",
    ]
    assert not passed.is_error
    assert len(page.resource_templates) == 4


def test_over_http_pages_of_other_origins_are_refused(service: ServiceProcess) -> None:
    with over_http(service) as url:
        assert status(url, Origin="https://example.com") == 403
        assert status(url, Host="example.com") == 403
        assert status(url, Origin="http://localhost:1") == 403
        assert status(url, **{"Sec-Fetch-Site": "cross-site"}) == 403


def test_http_is_for_this_machine_alone(service: ServiceProcess) -> None:
    done = OVERSPILL.run(["mcp", "--http", "0.0.0.0:0"], clean_environment(), stdin=b"", seconds=60)

    assert done.returncode == 2
    assert b"not an address of this machine alone" in done.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_answers_are_as_short_as_the_clients_program_needs(guard: Guard, mode: str) -> None:
    capture = stored(guard)
    cline = types.Implementation(name="Cline", version="3.0.65")
    async with Client(server(guard), mode=mode, client_info=cline) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("inspect_output", {"capture": capture, "lines": 9_000})

    assert tools[0].input_schema["properties"]["max_chars"]["maximum"] == 8_000
    assert len(found.content[0].text) <= 8_000  # type: ignore[union-attr]  # a text
