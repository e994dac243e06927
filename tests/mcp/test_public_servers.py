"""The proxy before public MCP servers, and the official inspector as its client.

They are downloaded from their registries, so they run only with `OVERSPILL_MCP_SERVERS=all`, or names of
servers with commas between. Those of npm need Node.js.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

INSPECTOR: Final = "@modelcontextprotocol/inspector@0.16.8"
OURS: Final = ["inspect_output", "list_captures"]
LINES: Final = "".join(f"line {number} of the log\n" for number in range(9_000))


class Public(NamedTuple):
    """A server: its command, and a call whose result is long, or none."""

    command: list[str]
    tool: str
    arguments: dict[str, Any]
    is_long: bool = True


SERVERS: Final = {
    "time": Public(
        ["uvx", "mcp-server-time"], "get_current_time", {"timezone": "Europe/Berlin"}, is_long=False
    ),
    "git": Public(["uvx", "mcp-server-git"], "git_diff_unstaged", {"repo_path": "FOLDER"}),
    "filesystem": Public(
        ["npx", "-y", "@modelcontextprotocol/server-filesystem", "FOLDER"],
        "read_text_file",
        {"path": "FOLDER/log.txt"},
    ),
    "everything": Public(
        ["npx", "-y", "@modelcontextprotocol/server-everything"], "echo", {"message": LINES}
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a long change."""
    log = tmp_path / "log.txt"
    log.write_text("nothing yet\n")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    log.write_text(LINES)
    return tmp_path


def skip_unless_asked_for(name: str, program: str) -> None:
    asked = os.environ.get("OVERSPILL_MCP_SERVERS", "")
    if asked != "all" and name not in asked.split(","):
        pytest.skip(f"OVERSPILL_MCP_SERVERS={name} downloads and runs it")
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")


def environment(service: ServiceProcess) -> dict[str, str]:
    return {**clean_environment(), "OVERSPILL_URL": service.url, "OVERSPILL_SPOOL": "off"}


def placed(value: Any, folder: Path) -> Any:
    return json.loads(json.dumps(value).replace("FOLDER", str(folder)))


@pytest.mark.parametrize("name", SERVERS)
async def test_a_public_server_works_behind_the_proxy(
    name: str, service: ServiceProcess, folder: Path
) -> None:
    public = SERVERS[name]
    skip_unless_asked_for(name, public.command[0])
    command = placed(public.command, folder)
    proxy = ["-m", "overspill", "mcp-proxy", "--", *command]
    direct = StdioServerParameters(command=command[0], args=command[1:], env=environment(service))
    proxied = StdioServerParameters(command=sys.executable, args=proxy, env=environment(service))
    async with Client(stdio_client(direct)) as client:
        theirs = (await client.list_tools()).tools
        whole = await client.call_tool(public.tool, placed(public.arguments, folder))
    async with Client(stdio_client(proxied)) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(public.tool, placed(public.arguments, folder))
        found = await client.call_tool("list_captures", {})

    assert tools[: len(theirs)] == theirs
    assert [tool.name for tool in tools[len(theirs) :]] == OURS
    assert not whole.is_error
    assert not result.is_error
    assert not found.is_error
    assert (len(str(whole)) > 100_000) == public.is_long
    assert len(str(result)) < 8_000
    assert bool((result.meta or {}).get("overspill")) == public.is_long


@pytest.mark.parametrize(
    ("server", "ours"),
    [
        (["mcp"], [*OURS, "get_terminal_output"]),
        (["mcp-proxy", "--", *SERVERS["everything"].command], OURS),
    ],
)
def test_the_official_inspector_lists_the_tools(
    service: ServiceProcess, server: list[str], ours: list[str]
) -> None:
    skip_unless_asked_for("inspector", "npx")
    command = ["npx", "-y", INSPECTOR, "--cli", sys.executable, "-m", "overspill", *server]
    done = subprocess.run(
        [*command, "--method", "tools/list"],
        env=environment(service),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]][-len(ours) :] == ours
