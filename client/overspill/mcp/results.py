"""What becomes of a tool's result: the guard shortens it, and it stays a result of its protocol."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from overspill.execution import threads
from overspill.guard.call_context import guarding_tool
from overspill.guard.exemption import policy_for_foreign_tool
from overspill.guard.guarded import METADATA
from overspill.guard.hosts import fitting_chars
from overspill.mcp.many_blocks import may_have_many, with_few_blocks
from overspill.mcp.request import CALL, Request
from overspill.mcp.schema_room import wants_length
from overspill.mcp.tool_names import ToolNames
from overspill.mcp.valid_results import shortened, validator, with_notice, with_notice_alone
from overspill.previews.notice_marks import is_marked, rewritten
from overspill.shapes.replacing import with_texts
from overspill.text.rendering import compact_json
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy

_log = logging.getLogger("overspill.mcp")
_READER: Final = "inspect_output"
_STRUCTURED: Final = "structuredContent"
_UNFINISHED: Final = "input_required"
"""The `resultType` of a result that asks the client for input."""


async def guarded(
    guard: Guard,
    policy: Policy | None,
    names: ToolNames,
    request: Request,
    result: Any,
    session: str | None = None,
) -> Any:
    """Return the result as it may go on, or the same object if it is not too long.

    `policy` is for the client's program, or None for one that is not known: then the guard's own holds.
    A result that asks the client for input stays as it is: the client answers it. So does one that cannot
    be rewritten.
    """
    try:
        return await _guarded(guard, policy, names, request, result, session)
    except Exception:  # noqa: BLE001  (the boundary: a tool's call never fails because of this)
        _log.warning("a result of %s passes as it came", request.tool, exc_info=True)
        return result


async def guarded_error(
    guard: Guard, policy: Policy | None, names: ToolNames, request: Request, error: Any
) -> Any:
    """Return the error of a call that went wrong as it may go on, or the same object if it is not too long.

    `policy` as in `guarded`. An error that cannot be rewritten stays as it is.
    """
    if request.tool in names.reading:
        policy = policy_for_foreign_tool(policy or guard.policy)
    with guarding_tool():
        found = await guard.process(error, tool=request.tool, call_id=request.call_id, policy=policy)
    if found.notice is None:
        return error
    return _with_reader(found.value, found.capture, names)


async def guarded_unless_lost(guard: Guard, tool: str, result: Any, session: str | None) -> Any:
    """Do the same for a gateway, which has no list of the server's tools.

    What is no result stays as it is, and so does one that nothing could store: nothing of it is lost.
    """
    if not isinstance(result, dict):
        return result
    call = Request(None, CALL, {"name": tool, "_meta": {}})
    new = await guarded(guard, None, ToolNames((), drops_schemas=False), call, result, session)
    is_lost = new is not result and new["_meta"][METADATA]["outcome"] == Outcome.TRUNCATED
    return result if is_lost else new


async def _guarded(
    guard: Guard,
    policy: Policy | None,
    names: ToolNames,
    request: Request,
    result: Any,
    session: str | None,
) -> Any:
    if isinstance(result, dict) and result.get("resultType") == _UNFINISHED:
        return result
    held = policy or guard.policy_for(session)
    foreign = policy_for_foreign_tool(held)
    if request.tool in names.reading:  # a tool of the server, which only has the name of one of ours
        policy = held = foreign
    fewer = result
    if request.tool not in foreign.exempt and may_have_many(result):
        most = fitting_chars(held.limits(request.tool))
        fewer = await threads.run(with_few_blocks, result, most)
    with guarding_tool():
        found = await guard.process(
            fewer, tool=request.tool, call_id=request.call_id, session=session, policy=policy
        )
    if found.notice is None:
        return fewer
    value = _with_reader(found.value, found.capture, names)
    if not isinstance(value, dict):
        return value
    if isinstance(result.get(_STRUCTURED), dict | list):
        notice = _with_reader(str(found.notice), found.capture, names)
        structured = await threads.run(_valid, policy or guard.policy, names, request, result, value, notice)
        value = {**value, _STRUCTURED: structured}
    meta = value.get("_meta")
    return {**value, "_meta": {**(meta if isinstance(meta, dict) else {}), METADATA: _status(found, names)}}


def _status(found: Guarded, names: ToolNames) -> dict[str, Any]:
    """Return what became of a result, for programs, and how the rest is read if it is stored."""
    status = {**found.metadata}
    if found.capture is not None:
        status["read_with"] = {"tool": names.name_of(_READER), "arguments": {"capture": found.capture}}
    return status


def _valid(
    policy: Policy,
    names: ToolNames,
    request: Request,
    result: dict[str, Any],
    value: dict[str, Any],
    notice: str,
) -> Any:
    """Return structured content that keeps to the tool's output schema. If it is cut, the notice is in it."""
    schema = names.schemas.get(request.tool)
    whole, ours = result[_STRUCTURED], value.get(_STRUCTURED)
    is_valid = _any_is_valid if schema is None else validator(schema, whole)
    if not is_valid(ours):
        most = fitting_chars(policy.limits(request.tool))
        short = _short(whole, notice, most, is_valid, may_be_alone_first=wants_length(schema))
        if not is_valid(short):  # then the whole was not: to check that takes as long as it is large
            return ours
        ours = short
    return ours if ours == whole else with_notice(ours, notice, is_valid)


def _short(
    whole: Any, notice: str, most: int, is_valid: Callable[[Any], bool], *, may_be_alone_first: bool
) -> Any:
    """Return content that is shortened, or has the notice alone if it would stay too long otherwise."""
    if may_be_alone_first:
        alone = with_notice_alone(whole, notice, most, is_valid)
        if alone is not whole:
            return alone
    short = shortened(whole, most, is_valid)
    if len(compact_json(short)) <= most:
        return short
    alone = with_notice_alone(whole, notice, most, is_valid)
    return short if alone is whole else alone


def _any_is_valid(_content: Any) -> bool:
    return True


def _with_reader(value: Any, capture: str | None, names: ToolNames) -> Any:
    """Return `value` with the name that the client has for our tool in its notice."""
    old, new = f'{_READER}("{capture}"', f'{names.name_of(_READER)}("{capture}"'

    def renamed(text: str) -> str:
        return rewritten(text, old, new) if old in text and is_marked(text) else text.replace(old, new)

    return value if old == new else with_texts(value, renamed)
