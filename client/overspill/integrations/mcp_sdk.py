"""The MCP Python SDK: a middleware for servers, and a line for clients.

server = MCPServer("files", middleware=[OverspillMiddleware()])
client = guard_client(Client("https://example.com/mcp"))
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp.types import CallToolResult, ListToolsResult
from pydantic import BaseModel

from overspill.integrations.adapter import Adapter, adapter_for
from overspill.mcp.client_hosts import ClientHosts
from overspill.mcp.rendering import SDK_REVISION
from overspill.mcp.rendering import result as rendered
from overspill.mcp.request import CALL, LIST, Request, client_name_of, session_over_http
from overspill.mcp.results import GuardedCall
from overspill.mcp.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from overspill.guard.guard import Guard

C = TypeVar("C", bound=Any)
_METHODS: Final = {True: ("call_tool_mcp", "list_tools_mcp"), False: ("call_tool", "list_tools")}
"""The methods of a client that return what the protocol says: FastMCP's have names of their own."""


class OverspillMiddleware:
    """Guards the results of every tool of a server, and lists `inspect_output` and `list_captures` too.

    For `MCPServer(middleware=[…])`, or `Server.middleware`. Results of the tools in `whole` stay whole, and
    those for a request whose `caller` is a program. Results with an output schema stay valid; with
    `drops_schemas` the schemas are taken out of the list instead. Clients over HTTP that have no session of
    their own list no captures, but read those whose handle they have. Without `guard`: see `Adapter`.
    """

    def __init__(
        self, guard: Guard | None = None, *, whole: Collection[str] = (), drops_schemas: bool = False
    ) -> None:
        self.adapter: Adapter = Adapter(guard)
        self._hosts = ClientHosts(self.adapter.guard)
        self._whole = frozenset(whole)
        self._names = ToolNames(self.adapter.reading_tools, drops_schemas=drops_schemas)
        self._has_listed = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer one message, or pass it on. Raises what `call_next` does."""
        if ctx.method == LIST:
            return self._listed(ctx, _dumped(await call_next(ctx)))
        if ctx.method != CALL:
            return await call_next(ctx)
        if not self._has_listed:
            await self._learn(ctx, call_next)
        request = Request(None, CALL, dict(ctx.params or {}))
        if request.tool in self._names.own:
            return await self._read(ctx, request)
        result = await call_next(ctx)
        if request.is_from_program or request.tool in self._whole:
            return result
        policy, dumped = self._hosts.policy(client_name_of(ctx.session)), _dumped(result)
        call = GuardedCall(self.adapter.guard, policy, self._names, request, self._session(ctx))
        new = await call.result(dumped)
        return result if new is dumped else new

    def _listed(self, ctx: ServerRequestContext[Any, Any], page: dict[str, Any]) -> dict[str, Any]:
        self._has_listed = page.get("nextCursor") is None
        self._names.use(self._hosts.tools(client_name_of(ctx.session)))
        return self._names.listed(page, ctx.protocol_version)

    async def _learn(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> None:
        """Ask the server for its tools: a client may call them without, and one may have the name of ours."""
        meta = {"_meta": ctx.params["_meta"]} if ctx.params and "_meta" in ctx.params else {}
        cursor: Any = {}
        while not self._has_listed:
            page = _dumped(await call_next(dataclasses.replace(ctx, method=LIST, params={**meta, **cursor})))
            self._listed(ctx, page)
            cursor = {"cursor": page.get("nextCursor")}

    async def _read(self, ctx: ServerRequestContext[Any, Any], request: Request) -> dict[str, Any]:
        tool = self._hosts.tool(self._names.own[request.tool].name, client_name_of(ctx.session))
        answer = await tool.acall(request.params.get("arguments"), session=self._session(ctx))
        return rendered(answer, ctx.protocol_version)

    def _session(self, ctx: ServerRequestContext[Any, Any]) -> str | None:
        return session_over_http(self.adapter.guard.session, ctx.request)


def _dumped(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return result or {}


def guard_client(client: C, guard: Guard | None = None, *, whole: Collection[str] = ()) -> C:
    """Guard the results of every tool call of a client; return the same object.

    `client` is a `Client` or a `ClientSession` of the SDK, or a `Client` of FastMCP. Its list of tools ends
    with `inspect_output` and `list_captures`, whose calls never reach the server. The results of the tools in
    `whole` stay whole. The client checks output schemas before. One that is guarded stays as it is, but for
    more tools in `whole`. Raises `ValueError` if it has another guard. Without `guard`: see `Adapter`.
    """
    call, list_tools = _METHODS[hasattr(client, _METHODS[True][0])]
    existing = getattr(getattr(client, call), "__self__", None)
    if isinstance(existing, _ClientGuard):
        adapter_for(guard, [existing.adapter])
        existing.whole |= set(whole)
        return client
    guarding = _ClientGuard(Adapter(guard), getattr(client, call), getattr(client, list_tools), whole)
    setattr(client, call, guarding.call_tool)
    setattr(client, list_tools, guarding.list_tools)
    return client


class _ClientGuard:
    """Replaces two methods of a client."""

    def __init__(self, adapter: Adapter, call: Any, list_tools: Any, whole: Collection[str]) -> None:
        self.adapter = adapter
        self.whole = set(whole)
        self._call = call
        self._list = list_tools
        self._names = ToolNames(adapter.reading_tools, drops_schemas=False)
        self._has_listed = False

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *args: Any, **more: Any
    ) -> Any:
        if name in self._names.own and not self._has_listed:
            await self.list_tools()  # the server may have a tool of that name
        if name in self._names.own:
            answer = await self._names.own[name].acall(arguments)
            return CallToolResult.model_validate(rendered(answer, SDK_REVISION))
        result = await self._call(name, arguments, *args, **more)
        request = Request(None, CALL, {"name": name, "_meta": more.get("meta")})
        if name in self.whole or request.is_from_program or not isinstance(result, CallToolResult):
            return result
        dumped = _dumped(result)
        new = await GuardedCall(self.adapter.guard, None, self._names, request).result(dumped)
        return result if new is dumped else CallToolResult.model_validate(new)

    async def list_tools(self, *args: Any, **more: Any) -> ListToolsResult:
        page = self._names.listed(_dumped(await self._list(*args, **more)), SDK_REVISION)
        self._has_listed = page.get("nextCursor") is None
        return ListToolsResult.model_validate(page)
