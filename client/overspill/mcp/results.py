"""Guards the result of a tool: a long one is shortened, and stays a valid result of its protocol."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from overspill.execution import threads
from overspill.guard.call_context import guarding_tool
from overspill.guard.exemption import policy_for_foreign_tool
from overspill.guard.guarded import METADATA
from overspill.guard.hosts import fitting_chars
from overspill.mcp.many_blocks import may_have_many, with_few_blocks
from overspill.mcp.request import CALL, Request
from overspill.mcp.tool_names import ToolNames
from overspill.mcp.valid_results import valid
from overspill.previews.notice_marks import is_marked, rewritten
from overspill.shapes.replacing import with_texts
from overspill.shapes.sender import Sender
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy

_log = logging.getLogger("overspill.mcp")
_READER: Final = "inspect_output"
_STRUCTURED: Final = "structuredContent"
_UNFINISHED: Final = "input_required"
"""The `resultType` of a result that asks the client for input."""


@dataclass(frozen=True)
class GuardedCall:
    """A call of a server's tool. Guards its result or error.

    `policy` is for the client's program. If it is None, the program is unknown, and the guard's own policy
    applies.
    """

    guard: Guard
    policy: Policy | None
    names: ToolNames
    request: Request
    session: str | None = None

    async def result(self, result: Any) -> Any:
        """Return the result as it may go on, or the same object if it is not too long.

        A result that asks the client for input stays as it is: the client answers it. So does one that cannot
        be rewritten.
        """
        try:
            return await self._guarded(result)
        except Exception:  # noqa: BLE001  (the boundary: a tool's call never fails because of this)
            _log.warning("a result of %s passes as it came", self.request.tool, exc_info=True)
            return result

    async def error(self, error: Any) -> Any:
        """Return the error of a call as it may go on, or the same object if it is not too long.

        Raises what rewriting it raises.
        """
        policy = self.policy
        if self.request.tool in self.names.reading:
            policy = policy_for_foreign_tool(policy or self.guard.policy)
        tool, call_id = self.request.tool, self.request.call_id
        with guarding_tool():
            found = await self.guard.process(error, tool=tool, call_id=call_id, policy=policy)
        return error if found.notice is None else self._with_reader(found.value, found.capture)

    async def _guarded(self, result: Any) -> Any:
        if isinstance(result, dict) and result.get("resultType") == _UNFINISHED:
            return result
        tool, policy = self.request.tool, self.policy
        own_policy = policy or self.guard.policy_for(self.session)
        foreign = policy_for_foreign_tool(own_policy)
        if tool in self.names.reading:  # a tool of the server, which only has the name of one of ours
            policy = own_policy = foreign
        fewer = result
        if tool not in foreign.exempt and may_have_many(result):
            fewer = await threads.run(with_few_blocks, result, fitting_chars(own_policy.limits(tool)))
        call_id, session = self.request.call_id, self.session
        with guarding_tool(Sender.MCP_SERVER):
            found = await self.guard.process(
                fewer, tool=tool, call_id=call_id, session=session, policy=policy
            )
        if found.notice is None:
            return fewer
        value = self._with_reader(found.value, found.capture)
        if not isinstance(value, dict):
            return value
        if isinstance(result.get(_STRUCTURED), dict | list):
            max_chars = fitting_chars((policy or self.guard.policy).limits(tool))
            notice = self._with_reader(str(found.notice), found.capture)
            contents = self.names.schemas.get(tool), result[_STRUCTURED], value.get(_STRUCTURED)
            value = {**value, _STRUCTURED: await threads.run(valid, *contents, notice, max_chars)}
        meta = value.get("_meta")
        return {**value, "_meta": {**(meta if isinstance(meta, dict) else {}), METADATA: self._status(found)}}

    def _status(self, found: Guarded) -> dict[str, Any]:
        """Return the fate of a result, for programs, and how to read the rest if it is stored."""
        status = {**found.metadata}
        if found.capture is not None:
            reader = self.names.name_of(_READER)
            status["read_with"] = {"tool": reader, "arguments": {"capture": found.capture}}
        return status

    def _with_reader(self, value: Any, capture: str | None) -> Any:
        """Return `value` with the name that the client has for our tool in its notice."""
        old, new = f'{_READER}("{capture}"', f'{self.names.name_of(_READER)}("{capture}"'

        def renamed(text: str) -> str:
            return rewritten(text, old, new) if old in text and is_marked(text) else text.replace(old, new)

        return value if old == new else with_texts(value, renamed)


async def guarded_unless_lost(guard: Guard, tool: str, result: Any, session: str | None) -> Any:
    """Return a result as it may go on from a gateway, which has no list of the server's tools.

    A value that is no result stays unchanged. So does a result that nothing could store, so nothing of it is
    lost.
    """
    if not isinstance(result, dict):
        return result
    request = Request(None, CALL, {"name": tool, "_meta": {}})
    call = GuardedCall(guard, None, ToolNames((), drops_schemas=False), request, session)
    new = await call.result(result)
    is_lost = new is not result and new["_meta"][METADATA]["outcome"] == Outcome.TRUNCATED
    return result if is_lost else new
