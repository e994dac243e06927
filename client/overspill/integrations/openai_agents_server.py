"""OpenAI Agents SDK: MCP servers whose results are guarded, and what the SDK says of a call.

`openai_agents` guards the tools of agents with it.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from overspill.guard.call_context import is_program
from overspill.guard.guarded import METADATA
from overspill.integrations.stand_in import StandIn
from overspill.shapes.fields import get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from overspill.integrations.adapter import Adapter, ToolCall


@dataclass
class _ServerCall:
    """A call of an MCP tool that runs. The SDK tells `call_tool` nothing of it."""

    context: Any
    metadata: dict[str, Any] | None = None


_SERVER_CALL: Final[ContextVar[_ServerCall | None]] = ContextVar("overspill_server_call", default=None)


class GuardedServer(StandIn):
    """An MCP server whose results are guarded. The SDK tells it of the run when it asks for metadata."""

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        return await self._inner.__aexit__(*raised)

    async def tool_meta_resolver(self, context: Any) -> Any:
        """Note the run in which a tool is called next."""
        _SERVER_CALL.set(_ServerCall(context.run_context))
        theirs = getattr(self._inner, "tool_meta_resolver", None)
        return None if theirs is None else await awaited(theirs(context))

    async def call_tool(self, tool_name: str, *args: Any, **more: Any) -> Any:
        """Call a tool, and guard its result."""
        call = _SERVER_CALL.get() or _ServerCall(None)
        running = self._inner.call_tool(tool_name, *args, **more)
        if is_from_program(getattr(call.context, "tool_call", None)):
            return await running
        guarded = await call_of(self._owner.adapter, call.context, tool_name).run(running)
        call.metadata = None if guarded.notice is None else guarded.metadata
        return guarded.value

    @property
    def custom_data_extractor(self) -> Any:
        """The function that makes the custom data of the call's output. Adds ours if the output was cut."""
        call, theirs = _SERVER_CALL.get(), getattr(self._inner, "custom_data_extractor", None)
        if call is None or call.metadata is None:
            return theirs
        return lambda context: extended(theirs, context, call.metadata)


def call_of(adapter: Adapter, context: Any, tool: str) -> ToolCall:
    """Return the call of a tool that the SDK's context is of."""
    return adapter.call(tool, getattr(context, "tool_call_id", None), session_of(context))


def session_of(context: Any) -> str | None:
    """Return the group of the run, if it has one."""
    return getattr(getattr(context, "run_config", None), "group_id", None)


def is_from_program(tool_call: Any) -> bool:
    """Return whether code made the call, and not the model."""
    return is_program(get(tool_call, "caller"))


async def extended(
    theirs: Callable[[Any], Any] | None, context: Any, ours: dict[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the custom data of an item: what its own extractor says, and ours beside it."""
    given = None if theirs is None else await awaited(theirs(context))
    return given if ours is None else {**(given or {}), METADATA: ours}


async def awaited(found: Any) -> Any:
    """Return what a function of the user's returned, which may be a coroutine function."""
    return await found if inspect.isawaitable(found) else found
