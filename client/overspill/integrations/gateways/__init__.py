"""What MCP gateways call: a whole fleet's results are guarded, and no agent changes."""
