"""The tools with which an agent reads what its guard stores.

for tool in reading_tools(guard):
register(tool.name, tool.description, tool.parameters, tool.call)      # or tool.acall
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from overspill.agent_tools import inspect_output, list_captures
from overspill.agent_tools.capture_source import CaptureSource
from overspill.agent_tools.inspect_request import MAX_CHARS, USUAL_CHARS
from overspill.agent_tools.repeated_looks import RepeatedLooks
from overspill.agent_tools.terminal_output import terminal_tool

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from overspill.agent_tools.agent_tool import AgentTool, Answer, Arguments
    from overspill.guard.guard import Guard
    from overspill.transfer.client import Client


def reading_tools(
    guard: Guard, *, max_chars: int | None = None, terminals: bool | None = None
) -> tuple[AgentTool, ...]:
    """Return the tools that read what `guard` stores: `inspect_output` and `list_captures`.

    With `terminals` there is `get_terminal_output` too; None leaves that to the guard's policy. Give them to
    the agent before its first call: a model that meets a notice needs them at once. Answers have at most
    20,000 characters, and 40,000 if a call asks for more; with a `max_chars` never more than that.
    """
    source = CaptureSource(guard.client, session=guard.session, spool=guard.spool)
    tools = _inspecting(source, max_chars), _listing(source, max_chars)
    if not (guard.policy.terminals if terminals is None else terminals):
        return tools
    return *tools, terminal_tool(guard, max_chars=USUAL_CHARS if max_chars is None else max_chars)


def _inspecting(source: CaptureSource, max_chars: int | None) -> AgentTool:
    looks = RepeatedLooks(inspect_output.ITSELF)

    def answer(client: Client | None, session: str, arguments: Arguments) -> Coroutine[Any, Any, Answer]:
        bounded = _bounded(arguments, max_chars)
        return inspect_output.inspect(client, source.holder, session or None, looks, **bounded)

    schema = _bounded_schema(inspect_output.INSPECT_OUTPUT_SCHEMA, max_chars)
    return source.tool(inspect_output.NAME, inspect_output.DESCRIPTION, schema, answer)


def _listing(source: CaptureSource, max_chars: int | None) -> AgentTool:
    limit = USUAL_CHARS if max_chars is None else min(max_chars, USUAL_CHARS)
    answer = partial(list_captures.list_captures, source, max_chars=limit)
    schema = list_captures.LIST_CAPTURES_SCHEMA
    return source.tool(list_captures.NAME, list_captures.DESCRIPTION, schema, answer)


def _bounded(arguments: Arguments, max_chars: int | None) -> Arguments:
    """Return the arguments with `max_chars` for what they ask, if that is more, no number, or nothing."""
    if max_chars is None:
        return arguments
    requested = arguments.get("max_chars", USUAL_CHARS)
    return {**arguments, "max_chars": min(requested, max_chars) if isinstance(requested, int) else max_chars}


def _bounded_schema(schema: dict[str, Any], max_chars: int | None) -> dict[str, Any]:
    if max_chars is None:
        return schema
    bounds = {"default": min(USUAL_CHARS, max_chars), "maximum": min(MAX_CHARS, max_chars)}
    properties = schema["properties"]
    return {**schema, "properties": {**properties, "max_chars": {**properties["max_chars"], **bounds}}}
