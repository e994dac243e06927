"""FastMCP: a middleware for servers. For clients see `guard_client` of `overspill.integrations.mcp_sdk`.

server = FastMCP("files", middleware=[OverspillMiddleware()])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp.types import CallToolResult

from overspill.integrations.adapter import Adapter
from overspill.mcp.client_hosts import ClientHosts
from overspill.mcp.rendering import SDK_REVISION, definition
from overspill.mcp.rendering import result as rendered
from overspill.mcp.request import CALL, Request, client_name_of, session_over_http
from overspill.mcp.results import GuardedCall
from overspill.mcp.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from mcp.types import CallToolRequestParams, ListToolsRequest

    from overspill.guard.guard import Guard


class OverspillMiddleware(Middleware):
    """Guards the results of every tool of a server, and lists `inspect_output` and `list_captures` too.

    Add it first: the first middleware is the outermost. Results of the tools in `whole` stay whole, and those
    for a request whose `caller` is a program. Results with an output schema stay valid; with `drops_schemas`
    the schemas are taken out of the list instead. Clients over HTTP that have no session of their own list no
    captures, but read those whose handle they have. Without `guard`: see `Adapter`.
    """

    def __init__(
        self, guard: Guard | None = None, *, whole: Collection[str] = (), drops_schemas: bool = False
    ) -> None:
        self.adapter: Adapter = Adapter(guard)
        self._hosts = ClientHosts(self.adapter.guard)
        self._whole = frozenset(whole)
        self._drops_schemas = drops_schemas
        self._names: ToolNames | None = None

    async def on_list_tools(
        self,
        context: MiddlewareContext[ListToolsRequest],
        call_next: CallNext[ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Add the reading tools to the list."""
        tools = await call_next(context)
        names = self._names = self._named(tools)
        tools = [tool.model_copy(update={"output_schema": names.schemas.get(tool.name)}) for tool in tools]
        offered = {tool.name: tool for tool in self._hosts.tools(_client_name(context.fastmcp_context))}
        return [*tools, *(_tool(offered[tool.name], name) for name, tool in names.own.items())]

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Answer a call of a reading tool, or guard the result of another. Raises what the tool does."""
        names = await self._tool_names(context.fastmcp_context)
        request = _request(context)
        session = self._session(context.fastmcp_context)
        if request.tool in names.own:
            return await self._read(names, request, session, _client_name(context.fastmcp_context))
        try:
            result = await call_next(context)
        except Exception as error:
            guard = self.adapter.guard
            found = await guard.process(error, tool=request.tool, call_id=request.call_id, session=session)
            value = found.value
            if value is error:
                raise
            raise value from None
        is_ours = isinstance(result, ToolResult) and not isinstance(result, InputRequiredToolResult)
        if not is_ours or request.is_from_program or request.tool in self._whole:
            return result
        policy = self._hosts.policy(_client_name(context.fastmcp_context))
        dumped = _dumped(result)
        new = await GuardedCall(self.adapter.guard, policy, names, request, session).result(dumped)
        return result if new is dumped else _tool_result(new)

    async def _read(
        self, names: ToolNames, request: Request, session: str | None, client_name: str
    ) -> ToolResult:
        tool = self._hosts.tool(names.own[request.tool].name, client_name)
        answer = await tool.acall(request.params.get("arguments"), session=session)
        return _tool_result(rendered(answer, SDK_REVISION))

    async def _tool_names(self, context: Context | None) -> ToolNames:
        """Return the names of all tools: a client may call one without having listed them."""
        if self._names is None:
            assert context is not None
            self._names = self._named(await context.fastmcp.list_tools(run_middleware=False))
        return self._names

    def _named(self, tools: Sequence[Tool]) -> ToolNames:
        names = ToolNames(self.adapter.reading_tools, drops_schemas=self._drops_schemas)
        described = [{"name": tool.name, "outputSchema": tool.output_schema} for tool in tools]
        names.listed({"tools": described}, SDK_REVISION)
        return names

    def _session(self, context: Context | None) -> str | None:
        request = None if context is None else context.request_context
        http = None if request is None else request.request
        return session_over_http(self.adapter.guard.session, http)


def _request(context: MiddlewareContext[CallToolRequestParams]) -> Request:
    """Return the call. FastMCP keeps what the client says beside it in the context of the request."""
    request = None if context.fastmcp_context is None else context.fastmcp_context.request_context
    meta = None if request is None else request.meta
    params = {"name": context.message.name, "arguments": context.message.arguments}
    return Request(None, CALL, {**params, "_meta": dict(meta or {})})


def _client_name(context: Context | None) -> str:
    request = None if context is None else context.request_context
    return "" if request is None else client_name_of(request.session)


def _tool(tool: Any, name: str) -> Tool:
    """Return a reading tool for the list. It is never run: the middleware answers its calls."""
    known = definition(tool, SDK_REVISION, name=name)
    return Tool(
        name=name,
        description=known["description"],
        parameters=known["inputSchema"],
        output_schema=known["outputSchema"],
        annotations=known["annotations"],
        meta=known["_meta"],
    )


def _dumped(result: ToolResult) -> dict[str, Any]:
    known: dict[str, Any] = {
        "content": [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in result.content]
    }
    if result.structured_content is not None:
        known["structuredContent"] = result.structured_content
    if result.meta is not None:
        known["_meta"] = result.meta
    return {**known, "isError": result.is_error}


def _tool_result(new: dict[str, Any]) -> ToolResult:
    known = CallToolResult.model_validate(new)
    return ToolResult(known.content, known.structured_content, known.meta, bool(known.is_error))
