"""The tools with which an agent reads what its guard stores.

for tool in reading_tools(guard):
register(tool.name, tool.description, tool.parameters, tool.call)      # or tool.acall
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.agent_tools import inspect_output, list_captures
from overspill.agent_tools.agent_tool import AgentTool
from overspill.agent_tools.capture_source import CaptureSource

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from overspill.agent_tools.agent_tool import Answer, Arguments
    from overspill.guard.guard import Guard
    from overspill.transfer.client import Client


def reading_tools(guard: Guard) -> tuple[AgentTool, ...]:
    """Return the tools that read what `guard` stores: `inspect_output` and `list_captures`.

    Give them to the agent before its first call: a model that meets a notice needs them at once.
    """
    source = CaptureSource(guard.client, session=guard.session, spool=guard.spool)
    return _inspecting(source), _listing(source)


def _inspecting(source: CaptureSource) -> AgentTool:
    def work(client: Client | None, given: Arguments, session: str | None) -> Coroutine[Any, Any, Answer]:
        named = source.session if session is None else session
        return inspect_output.inspect(client, source.holder, named or None, **given)

    return AgentTool(
        inspect_output.NAME,
        inspect_output.DESCRIPTION,
        inspect_output.INSPECT_OUTPUT_SCHEMA,
        lambda given, session: source.run(lambda client: work(client, given, session)),
        lambda given, session: source.run_async(lambda client: work(client, given, session)),
    )


def _listing(source: CaptureSource) -> AgentTool:
    def work(client: Client | None, given: Arguments, session: str | None) -> Coroutine[Any, Any, Answer]:
        named = source.session if session is None else session
        return list_captures.list_captures(source, client, named, given)

    return AgentTool(
        list_captures.NAME,
        list_captures.DESCRIPTION,
        list_captures.LIST_CAPTURES_SCHEMA,
        lambda given, session: source.run(lambda client: work(client, given, session)),
        lambda given, session: source.run_async(lambda client: work(client, given, session)),
    )
