"""A real MCP server over stdio, with the tools of the cases. It runs in each framework's environment."""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server import MCPServer

sys.path.append(str(Path(__file__).parents[3]))

from tests.integrations.kit import tools

server = MCPServer("kit")
for tool in (tools.lines, tools.query, tools.fail):
    server.tool()(tool)

if __name__ == "__main__":
    server.run()
