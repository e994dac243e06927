"""The headers of streamable HTTP that describe a message, so that gateways need not read bodies."""

from __future__ import annotations

from typing import Any, Final

from mcp.shared.inbound import (
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)

from overspill.mcp.request import CALL, Request

_NAMED_BY: Final = {CALL: "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter of a request that is copied into the header `Mcp-Name`."""


class RequestHeaders:
    """The headers of a connection's messages: those of a tool's call also depend on the tool's schema."""

    def __init__(self) -> None:
        self._of_tools: dict[str, dict[tuple[str, ...], str]] = {}
        """The headers of arguments (`x-mcp-header`) by tool, and by the path of the argument."""

    def note(self, result: dict[str, Any]) -> None:
        """Look for schemas of tools in a result of the server."""
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if schema is not None and find_invalid_x_mcp_header(schema) is None:
                self._of_tools[str(tool.get("name"))] = x_mcp_header_map(schema)

    def of(self, message: dict[str, Any], agreed: str | None) -> dict[str, str]:
        """Return the headers for a message. `agreed` is the revision of the connection, None if none is."""
        params = message.get("params")
        request = Request(None, str(message.get("method", "")), params if isinstance(params, dict) else {})
        if request.revision is None:
            is_first = agreed is None or request.method == "initialize"
            return {} if is_first else {"mcp-protocol-version": str(agreed)}
        headers = {"mcp-protocol-version": request.revision, "mcp-method": request.method}
        name = request.params.get(_NAMED_BY.get(request.method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
        return {**headers, **self._of_arguments(request)}

    def _of_arguments(self, call: Request) -> dict[str, str]:
        arguments = call.params.get("arguments")
        schema_headers = self._of_tools.get(call.tool) if call.method == CALL else None
        return (
            mcp_param_headers(schema_headers, arguments)
            if schema_headers and isinstance(arguments, dict)
            else {}
        )
