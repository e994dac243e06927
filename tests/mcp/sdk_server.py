"""An MCP server made with the official SDK."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk")


@server.tool()
def log() -> str:
    """Return a long text."""
    return "".join(f"line {number} of the log\n" for number in range(9_000))


@server.tool()
def numbers() -> dict[str, list[int]]:
    """Return many numbers."""
    return {"numbers": list(range(30_000))}


@server.tool()
def kilobyte() -> str:
    """Return 1 KB."""
    return "x" * 1_024


@server.prompt()
def hello(name: str) -> str:
    """Return a greeting."""
    return f"hello {name}"


if __name__ == "__main__":
    server.run("stdio")
