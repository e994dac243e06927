"""The proxy before an MCP server: it passes JSON-RPC messages on, and guards what tools return."""
