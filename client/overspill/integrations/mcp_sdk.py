"""The MCP Python SDK: a middleware for servers, and a line for clients.

server = MCPServer("files", middleware=[OverspillMiddleware()])
client = guard_client(Client("https://example.com/mcp"))
"""

from __future__ import annotations

import dataclasses
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp.types import CallToolResult, ListToolsResult
from pydantic import BaseModel

from overspill.integrations.adapter import Adapter
from overspill.mcp.client_hosts import ClientHosts
from overspill.mcp.rendering import result as rendered
from overspill.mcp.request import Request
from overspill.mcp.results import guarded
from overspill.mcp.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from overspill.guard.guard import Guard

C = TypeVar("C", bound=Any)
_CALL: Final = "tools/call"
_LIST: Final = "tools/list"
_RENDERED_AS: Final = "2025-11-25"
"""The revision whose form the SDK's own types have."""
_SESSION_HEADER: Final = "mcp-session-id"


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
        self.adapter = Adapter(guard)
        self._hosts = ClientHosts(self.adapter.guard)
        self._whole = frozenset(whole)
        self._names = ToolNames(self.adapter.reading_tools, drops_schemas=drops_schemas)
        self._has_listed = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer one message, or pass it on. Raises what `call_next` does."""
        if ctx.method == _LIST:
            return self._listed(ctx, _dumped(await call_next(ctx)))
        if ctx.method != _CALL:
            return await call_next(ctx)
        if not self._has_listed:
            await self._learn(ctx, call_next)
        request = Request(None, _CALL, dict(ctx.params or {}))
        if request.tool in self._names.own:
            return await self._read(ctx, request)
        result = await call_next(ctx)
        if request.is_from_program or request.tool in self._whole:
            return result
        policy, dumped = self._hosts.policy(_client_name(ctx)), _dumped(result)
        new = await guarded(self.adapter.guard, policy, self._names, request, dumped, self._session(ctx))
        return result if new is dumped else new

    def _listed(self, ctx: ServerRequestContext[Any, Any], page: dict[str, Any]) -> dict[str, Any]:
        self._has_listed = page.get("nextCursor") is None
        self._names.use(self._hosts.tools(_client_name(ctx)))
        return self._names.listed(page, ctx.protocol_version)

    async def _learn(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> None:
        """Ask the server for its tools: a client may call them without, and one may have the name of ours."""
        kept = {"_meta": ctx.params["_meta"]} if ctx.params and "_meta" in ctx.params else {}
        cursor: Any = {}
        while not self._has_listed:
            page = _dumped(await call_next(dataclasses.replace(ctx, method=_LIST, params={**kept, **cursor})))
            self._listed(ctx, page)
            cursor = {"cursor": page.get("nextCursor")}

    async def _read(self, ctx: ServerRequestContext[Any, Any], request: Request) -> dict[str, Any]:
        name = self._names.own[request.tool].name
        tool = next(each for each in self._hosts.tools(_client_name(ctx)) if each.name == name)
        answer = await tool.acall(request.params.get("arguments"), session=self._session(ctx))
        return rendered(answer, ctx.protocol_version)

    def _session(self, ctx: ServerRequestContext[Any, Any]) -> str | None:
        """Return the session of a client's captures: over HTTP never that of another client."""
        if ctx.request is None:
            return None
        own = getattr(ctx.request, "headers", {}).get(_SESSION_HEADER) or secrets.token_hex(8)
        return f"{self.adapter.guard.session}/{own}"


def _dumped(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return result or {}


def _client_name(ctx: ServerRequestContext[Any, Any]) -> str:
    known = ctx.session.client_params
    return "" if known is None or known.client_info is None else known.client_info.name


def guard_client(client: C, guard: Guard | None = None, *, whole: Collection[str] = ()) -> C:
    """Guard the results of every `call_tool` of a `Client` or a `ClientSession`; return the same object.

    Its `list_tools` ends with `inspect_output` and `list_captures`, which `call_tool` answers without the
    server. The results of the tools in `whole` stay whole. The client checks output schemas before.
    Without `guard`: see `Adapter`.
    """
    adapter = Adapter(guard)
    names = ToolNames(adapter.reading_tools, drops_schemas=False)
    call, list_tools = client.call_tool, client.list_tools

    async def call_tool(name: str, arguments: dict[str, Any] | None = None, *args: Any, **more: Any) -> Any:
        if name in names.own:
            answer = await names.own[name].acall(arguments)
            return CallToolResult.model_validate(rendered(answer, _RENDERED_AS))
        result = await call(name, arguments, *args, **more)
        request = Request(None, _CALL, {"name": name, "_meta": more.get("meta")})
        if name in whole or request.is_from_program or not isinstance(result, CallToolResult):
            return result
        dumped = _dumped(result)
        new = await guarded(adapter.guard, None, names, request, dumped)
        return result if new is dumped else CallToolResult.model_validate(new)

    async def listed(*args: Any, **more: Any) -> ListToolsResult:
        page = _dumped(await list_tools(*args, **more))
        return ListToolsResult.model_validate(names.listed(page, _RENDERED_AS))

    client.call_tool, client.list_tools = call_tool, listed
    return client
