"""What all adapters share: a guard, and the tools that read what it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.agent_tools.reading_tools import reading_tools
from overspill.guard.call_context import calling
from overspill.guard.environment_policy import environment_policy
from overspill.guard.exemption import policy_for_foreign_tool, policy_for_own_tool
from overspill.guard.guard import Guard
from overspill.guard.policy_defaults import READING_TOOLS
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy


class OwnAnswer(str):
    """An answer of a reading tool, for frameworks whose hooks see no more of a tool than its name."""

    __slots__ = ()


class Adapter:
    """The guard of one agent, and its `reading_tools`: with `Policy(terminals=True)` those of terminals too.

    Without a `guard` it makes one for the service that `OVERSPILL_URL` and `OVERSPILL_KEY` name, with the
    policy file of `OVERSPILL_POLICY`. Raises what `SyncClient` and `Policy.load` do if they make no sense.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        self.guard: Guard = Guard(SyncClient(), environment_policy()) if guard is None else guard
        self.reading_tools: tuple[AgentTool, ...] = reading_tools(self.guard)

    async def guarded(
        self,
        running: Awaitable[Any],
        *,
        tool: str,
        call_id: str,
        session: str | None,
        passing: tuple[type[Exception], ...] = (),
        is_own: bool = False,
    ) -> Guarded:
        """Wait for a tool's call, and return what the guard makes of its result; `is_own` as in `process`.

        Raises what the call raises; the message of an exception is shortened if it is too long, unless its
        class is one of `passing`: those that a framework uses for control flow.
        """
        try:
            with calling(call_id, session):
                result = await running
        except passing:
            raise
        except Exception as error:
            guarded = await self.process(error, tool=tool, call_id=call_id, session=session, is_own=is_own)
            if guarded.value is error:
                raise
            raise guarded.value from None
        return await self.process(result, tool=tool, call_id=call_id, session=session, is_own=is_own)

    async def process(
        self, result: Any, *, tool: str, call_id: str, session: str | None = None, is_own: bool = False
    ) -> Guarded:
        """Return what the guard makes of a result. `is_own`: it is of one of the `reading_tools`.

        A tool that only has the name of one is guarded as all others are.
        """
        policy = self._policy(result, tool, session, is_own=is_own)
        return await self.guard.process(result, tool=tool, call_id=call_id, session=session, policy=policy)

    def process_sync(
        self, result: Any, *, tool: str, call_id: str, session: str | None = None, is_own: bool = False
    ) -> Guarded:
        """Do the same as `process`, for code without an event loop."""
        policy = self._policy(result, tool, session, is_own=is_own)
        return self.guard.process_sync(result, tool=tool, call_id=call_id, session=session, policy=policy)

    def _policy(self, result: Any, tool: str, session: str | None, *, is_own: bool) -> Policy | None:
        if is_own or isinstance(result, OwnAnswer):
            return policy_for_own_tool(self.guard.policy_for(session), tool)
        if tool not in READING_TOOLS:
            return None
        return policy_for_foreign_tool(self.guard.policy_for(session))
