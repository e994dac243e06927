"""Relays messages between a client and a server. All pass as they came, except lists of tools and results.

It does no I/O: it is given the lines of both sides, and calls back with what to send.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from overspill.mcp.client_hosts import ClientHosts
from overspill.mcp.growth import Watches
from overspill.mcp.progress import reporting, waited_for
from overspill.mcp.proxy.messages import (
    Message,
    NotAMessage,
    encoded,
    id_key,
    messages,
    parsed,
    request_of,
    with_member,
)
from overspill.mcp.proxy.own_requests import OwnRequests
from overspill.mcp.rendering import result as rendered
from overspill.mcp.request import CALL, LIST
from overspill.mcp.results import guarded, guarded_error
from overspill.mcp.tool_names import ToolNames
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from msgspec import Raw

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.mcp.progress import Report
    from overspill.mcp.proxy.messages import Key
    from overspill.mcp.request import Request

    Rewrite = Callable[[dict[str, Any]], Awaitable[Any]]

_log = logging.getLogger("overspill.mcp")
_TASK_METHODS: Final = frozenset({"tasks/result", "tasks/get"})
"""How a client gets the result of a call that became a task: the first in 2025-11-25, the other later."""
_CANCELLED: Final = "notifications/cancelled"
_SERVER_ENDED: Final = -32000
_MOST_TASKS: Final = 10_000
_MOST_PAGES: Final = 100
"""Pages of tools that the proxy asks for by itself: a server may always name one more."""
_OLDEST: Final = "2024-11-05"


class Choices(Struct, frozen=True):
    """What the user decides: the tools whose results stay whole, and whether output schemas are dropped."""

    whole: frozenset[str] = frozenset()
    drops_schemas: bool = False


class Relay:
    """One connection. `revision` is what client and server agreed on, None in revisions that agree on none.

    `to_client` and `to_server` get the bytes of one message, without the end of its line.
    """

    def __init__(
        self,
        guard: Guard,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        choices: Choices = Choices(),  # noqa: B008  (frozen)
    ) -> None:
        self._guard = guard
        self._to_client = to_client
        self._to_server = to_server
        self._choices = choices
        self._hosts = ClientHosts(guard)
        self._watches = Watches(self._hosts.tools("")[0])
        self._names = ToolNames(self._hosts.tools(""), drops_schemas=choices.drops_schemas)
        self._pending: dict[Key, Request] = {}
        """The requests that the server has not answered yet."""
        self._own_requests = OwnRequests(to_server)
        self._has_listed = False
        self._listing = asyncio.Lock()
        self._task_calls: Latest[str, Request] = Latest(_MOST_TASKS)
        """The calls whose results the client asks for later, by the ids of their tasks."""
        self._client_name = ""
        self.revision: str | None = None
        self._reading_calls: dict[Key, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def from_client(self, line: bytes) -> None:
        """Take a line of the client. Pass on an invalid one too: the server knows best what to answer."""
        try:
            read = list(messages(line))
        except (NotAMessage, ValueError):
            self._to_server(line)
            return
        for raw, message in read:
            if not self._is_for_us(message):
                self._to_server(raw)

    def from_server(self, line: bytes) -> None:
        """Take a line of the server. Raises `NotAMessage` if the client could not read it."""
        try:
            read = list(messages(line))
        except ValueError as error:
            raise NotAMessage from error
        for raw, message in read:
            if self._own_requests.take(message):
                continue
            request = None if message.method is not UNSET else self._pending.pop(message.key, None)
            if request is None or request.method not in _REWRITTEN:
                self._to_client(raw)
            elif message.result is not UNSET:
                self._begin(self._send(raw, "result", message.result, partial(self._rewritten, request)))
            elif message.error is not UNSET and request.method == CALL:
                self._begin(self._send(raw, "error", message.error, partial(self._shortened, request)))
            else:
                self._to_client(raw)

    def server_ended(self, why: str) -> None:
        """Answer every request that is under way with an error. Cancel our own reads."""
        self._own_requests.end()
        for task in self._reading_calls.values():
            task.cancel()
        error = {"code": _SERVER_ENDED, "message": why}
        ids = [*(request.id for request in self._pending.values()), *(key[1] for key in self._reading_calls)]
        self._pending.clear()
        for given in ids:
            self._to_client(encoded({"jsonrpc": "2.0", "id": given, "error": error}))

    async def finish(self) -> None:
        """Wait until every result that has come is sent on, which the guard may hold to store it."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _is_for_us(self, message: Message) -> bool:
        """Return whether the message is answered here. Note a request that is not."""
        if message.method is UNSET:
            return False
        if message.id is UNSET:
            return message.method == _CANCELLED and self._is_cancelled(message)
        request = request_of(message)
        self._note_client(request)
        tool = self._names.own.get(request.tool) if request.method == CALL else None
        if tool is not None:
            self._reading_calls[message.key] = self._begin(self._read(tool, request))
            return True
        if request.method == LIST and request.params.get("cursor") is None:
            self._names.begin()
        self._pending[message.key] = request
        return False

    def _note_client(self, request: Request) -> None:
        """Keep to what the client's program shows whole. The client says who it is, once or each time."""
        if request.client_name and request.client_name != self._client_name:
            self._client_name = request.client_name
            self._names.use(self._hosts.tools(request.client_name))

    def _is_cancelled(self, message: Message) -> bool:
        """End the call of a reading tool that the client gave up. Return whether it is one."""
        params = request_of(Message(id=None, method=_CANCELLED, params=message.params)).params
        key = id_key(params.get("requestId"))
        task = self._reading_calls.get(key)
        if task is not None:
            task.cancel()
            return True
        request = self._pending.get(key)
        if request is not None and request.method not in _REWRITTEN:
            del self._pending[key]  # the answer of another may be under way: it must not pass unguarded
        return False

    async def _read(self, tool: AgentTool, request: Request) -> None:
        """Answer a call of a reading tool."""
        arguments = request.params.get("arguments")
        report, wanted = self._report(request.meta.get("progressToken")), waited_for(tool.name, arguments)
        try:
            answer = await reporting(tool.acall(arguments), report, self._watches, wanted)
        finally:
            self._reading_calls.pop(id_key(request.id), None)
        found = rendered(answer, request.revision or self.revision or _OLDEST)
        self._to_client(encoded({"jsonrpc": "2.0", "id": request.id, "result": found}))

    def _report(self, token: Any) -> Report | None:
        """Return what sends progress, or None if the client asked for none."""
        if token is None:
            return None

        async def report(seconds: float, message: str) -> None:
            params = {"progressToken": token, "progress": seconds, "message": message}
            self._to_client(encoded({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

        return report

    async def _send(self, raw: bytes, name: str, member: Raw, rewrite: Rewrite) -> None:
        """Send on the server's answer, whose member `name` is rewritten. If it cannot be, it stays."""
        try:
            given = parsed(member)
            new = await rewrite(given)
            line = raw if new is given else with_member(raw, name, new)
        except Exception:  # noqa: BLE001  (the boundary: the proxy never breaks a connection)
            _log.warning("a message of the server passes as it came", exc_info=True)
            line = raw
        self._to_client(line)

    async def _rewritten(self, request: Request, result: dict[str, Any]) -> Any:
        if request.method == LIST:
            self._has_listed |= result.get("nextCursor") is None
            return self._names.listed(result, request.revision or self.revision or _OLDEST)
        if request.method == CALL:
            task = _task_of(result)
            if task is not None:
                self._task_calls[task] = request
            return await self._guarded(request, result)
        if request.method in _TASK_METHODS:
            return await self._of_task(request, result)
        self.revision = str(result.get("protocolVersion", _OLDEST))
        return result

    async def _guarded(self, call: Request, result: dict[str, Any]) -> Any:
        if call.is_from_program or call.tool in self._choices.whole:
            return result
        if isinstance(result.get("structuredContent"), dict | list):
            await self._learn(call)
        policy = self._hosts.policy(self._client_name)
        return await guarded(self._guard, policy, self._names, call, result)

    async def _shortened(self, call: Request, error: dict[str, Any]) -> Any:
        if call.is_from_program or call.tool in self._choices.whole:
            return error
        return await guarded_error(
            self._guard, self._hosts.policy(self._client_name), self._names, call, error
        )

    async def _learn(self, call: Request) -> None:
        """Ask the server for its tools if the client has not: it may check results by their schemas later."""
        meta = {name: value for name, value in call.meta.items() if name != "progressToken"}
        params: dict[str, Any] = {"_meta": meta} if meta else {}
        async with self._listing:
            for _ in range(_MOST_PAGES):
                if self._has_listed:
                    return
                page = await self._own_requests.ask(LIST, params) or {}
                if isinstance(page.get("tools"), list):
                    self._names.listed(page, call.revision or self.revision or _OLDEST)
                self._has_listed = page.get("nextCursor") is None
                params = {**params, "cursor": page.get("nextCursor")}
            self._has_listed = True

    async def _of_task(self, asked: Request, result: dict[str, Any]) -> Any:
        """Return the result of a call that became a task: the answer itself, or its field `result`."""
        call, inner = self._task_calls.get(str(asked.params.get("taskId"))), result.get("result")
        if call is None:
            return result
        if not isinstance(inner, dict):
            return await self._guarded(call, result)
        new = await self._guarded(call, inner)
        return result if new is inner else {**result, "result": new}

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _task_of(result: dict[str, Any]) -> str | None:
    """Return the id of the task that a call became: in 2025-11-25 it is in `task`, later beside it."""
    task = result.get("task")
    named = task.get("taskId") if isinstance(task, dict) else result.get("taskId")
    return named if isinstance(named, str) else None


_REWRITTEN: Final = frozenset({CALL, LIST, "initialize", *_TASK_METHODS})
