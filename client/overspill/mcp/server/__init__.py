"""The MCP server: the reading tools, and captures as resources."""
