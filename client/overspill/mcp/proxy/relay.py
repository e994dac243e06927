"""Relays messages between a client and a server. All pass as they came, except lists of tools and results.

It does no I/O: it gets the lines of both sides, and calls back with the messages to send.
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
    request_of,
    text_only,
    value_or_text,
    with_member,
)
from overspill.mcp.proxy.open_requests import OpenRequests, similar_keys
from overspill.mcp.proxy.own_requests import OwnRequests
from overspill.mcp.proxy.task_calls import TASK_NEWS, TASK_RESULT, TASK_STATE, TaskCalls
from overspill.mcp.rendering import result as rendered
from overspill.mcp.request import CALL, LIST
from overspill.mcp.results import GuardedCall
from overspill.mcp.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from msgspec import Raw

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.mcp.progress import Report
    from overspill.mcp.proxy.messages import Key
    from overspill.mcp.request import Request

    Rewrite = Callable[[Any], Awaitable[Any]]

_log = logging.getLogger("overspill.mcp")
_CANCELLED: Final = "notifications/cancelled"
_SERVER_ENDED: Final = -32000
_MAX_PAGES: Final = 100
"""Pages of tools that the proxy asks for by itself: a server may always name one more."""
_OLDEST: Final = "2024-11-05"


class Choices(Struct, frozen=True):
    """The user's choices: the tools whose results stay whole, and whether output schemas are dropped."""

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
        self._names = ToolNames(
            self._hosts.tools(""), drops_schemas=choices.drops_schemas, whole=choices.whole
        )
        self._open_requests = OpenRequests()
        self._own_requests = OwnRequests(to_server)
        self._has_listed = False
        self._listing = asyncio.Lock()
        self._task_calls = TaskCalls()
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
            if self._own_requests.take(message) or self._is_for_reading_call(message):
                continue
            if message.method == TASK_NEWS:
                self._begin(self._send(raw, message, {"params": self._of_task}))
                continue
            request = None if message.method is not UNSET else self._open_requests.answered(message.id)
            if request is None or request.method not in _REWRITTEN:
                self._to_client(raw)
            else:
                call = self._task_calls.call_of(request)
                rewrites = {
                    "result": partial(self._rewritten, request),
                    "error": partial(self._shortened, call),
                }
                self._begin(self._send(raw, message, rewrites))

    def server_ended(self, reason: str) -> None:
        """Answer every request that is under way with an error. Cancel our own reads."""
        self._own_requests.end()
        for task in self._reading_calls.values():
            task.cancel()
        error = {"code": _SERVER_ENDED, "message": reason}
        for request_id in [*self._open_requests.end(), *(key[1] for key in self._reading_calls)]:
            self._to_client(encoded({"jsonrpc": "2.0", "id": request_id, "error": error}))

    async def finish(self) -> None:
        """Wait until every result that has come is sent on. The guard may hold a result to store it."""
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
        self._open_requests.note(request)
        return False

    def _note_client(self, request: Request) -> None:
        """Apply the limits of the client's program. The client says its name, once or with each request."""
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
        self._open_requests.give_up(params.get("requestId"))
        return False

    def _is_for_reading_call(self, message: Message) -> bool:
        """Return whether the server answers a call that is answered here.

        The client must not see that answer.
        """
        if message.method is not UNSET:
            return False
        known = (
            key
            for key in similar_keys(message.id)
            if key in self._reading_calls or key in self._open_requests
        )
        return next(known, None) in self._reading_calls

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
        """Return the function that sends progress, or None if the client asked for none."""
        if token is None:
            return None

        async def report(seconds: float, message: str) -> None:
            params = {"progressToken": token, "progress": seconds, "message": message}
            self._to_client(encoded({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

        return report

    async def _send(self, raw: bytes, message: Message, rewrites: Mapping[str, Rewrite]) -> None:
        """Send on a message of the server, with the members that `rewrites` names rewritten."""
        line = raw
        for name, rewrite in rewrites.items():
            member = getattr(message, name)
            if member is not UNSET:
                line = await self._with_rewritten(line, name, member, rewrite)
        self._to_client(line)

    async def _with_rewritten(self, line: bytes, name: str, member: Raw, rewrite: Rewrite) -> bytes:
        """Return the message with a member rewritten. If it cannot be, it stays."""
        try:
            member_value = value_or_text(member)
            new = await rewrite(member_value)
            return line if new is member_value else with_member(line, name, text_only(name, new))
        except Exception:  # noqa: BLE001  (the boundary: the proxy never breaks a connection)
            _log.warning("a message of the server passes as it came", exc_info=True)
            return line

    async def _rewritten(self, request: Request, result: Any) -> Any:
        if request.method == LIST:
            self._has_listed |= result.get("nextCursor") is None
            return self._names.listed(result, request.revision or self.revision or _OLDEST)
        if request.method == TASK_STATE:
            return await self._of_task(result, request.params.get("taskId"))
        if request.method == "initialize":
            self.revision = str(result.get("protocolVersion", _OLDEST))
            return result
        if request.method == CALL:
            self._task_calls.note(request, result)
        return await self._guarded(self._task_calls.call_of(request), result)

    async def _of_task(self, state: Any, task: Any = None) -> Any:
        """Return the server's message about a task, with the guarded result or error of its call."""
        call = self._task_calls.get(state.get("taskId") if task is None else task)
        new = {}
        if "result" in state:
            new["result"] = await self._guarded(call, state["result"])
        if "error" in state:
            new["error"] = await self._shortened(call, state["error"])
        return {**state, **new} if any(state[name] is not new[name] for name in new) else state

    async def _guarded(self, call: Request | None, result: Any) -> Any:
        known = self._open_call(call)
        if known is None:
            return result
        if isinstance(result, dict) and isinstance(result.get("structuredContent"), dict | list):
            await self._learn(known.request)
        return await known.result(result)

    async def _shortened(self, call: Request | None, error: Any) -> Any:
        known = self._open_call(call)
        return error if known is None else await known.error(error)

    def _open_call(self, call: Request | None) -> GuardedCall | None:
        """Return a call for the guard, or None for one whose result stays whole."""
        if call is None or call.is_from_program or call.tool in self._choices.whole:
            return None
        return GuardedCall(self._guard, self._hosts.policy(self._client_name), self._names, call)

    async def _learn(self, call: Request) -> None:
        """Ask the server for its tools if the client has not: it may check results by their schemas later."""
        meta = {name: value for name, value in call.meta.items() if name != "progressToken"}
        params: dict[str, Any] = {"_meta": meta} if meta else {}
        async with self._listing:
            for _ in range(_MAX_PAGES):
                if self._has_listed:
                    return
                page = await self._own_requests.ask(LIST, params) or {}
                if isinstance(page.get("tools"), list):
                    self._names.listed(page, call.revision or self.revision or _OLDEST)
                self._has_listed = page.get("nextCursor") is None
                params = {**params, "cursor": page.get("nextCursor")}
            self._has_listed = True

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


_REWRITTEN: Final = frozenset({CALL, LIST, "initialize", TASK_RESULT, TASK_STATE})
