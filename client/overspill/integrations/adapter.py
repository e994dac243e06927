"""What all adapters share: a guard, and the tools that read what it stores."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from overspill.agent_tools.reading_tools import reading_tools
from overspill.guard import call_context
from overspill.guard.environment_policy import environment_policy
from overspill.guard.exemption import policy_for_foreign_tool, policy_for_own_tool
from overspill.guard.guard import Guard
from overspill.guard.policy_defaults import READING_TOOLS
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

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

        Raises what the call raises: see `calling`.
        """
        call: dict[str, Any] = {"tool": tool, "call_id": call_id, "session": session, "is_own": is_own}
        async with self.calling(**call, passing=passing):
            result = await running
        return await self.process(result, **call)

    @asynccontextmanager
    async def calling(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> AsyncIterator[None]:
        """Call a tool in the block; `call` as in `process`. What the tool captures belongs to that call.

        Its exceptions go on as `raising` says.
        """
        async with self.raising(passing=passing, **call):
            with call_context.calling(call["call_id"], call["session"]):
                yield

    @contextmanager
    def calling_sync(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> Iterator[None]:
        """Do the same as `calling`, for code without an event loop."""
        with (
            self.raising_sync(passing=passing, **call),
            call_context.calling(call["call_id"], call["session"]),
        ):
            yield

    @asynccontextmanager
    async def raising(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> AsyncIterator[None]:
        """Raise what the block raises, with its message shortened if it is too long; `call` as in `process`.

        The classes of `passing` stay as they are: those that a framework uses for control flow.
        """
        try:
            yield
        except passing:
            raise
        except Exception as error:  # a tool may raise anything; nothing is kept back
            guarded = await self.process(error, **call)
            if guarded.value is error:
                raise
            raise guarded.value from None

    @contextmanager
    def raising_sync(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> Iterator[None]:
        """Do the same as `raising`, for code without an event loop."""
        try:
            yield
        except passing:
            raise
        except Exception as error:  # a tool may raise anything; nothing is kept back
            guarded = self.process_sync(error, **call)
            if guarded.value is error:
                raise
            raise guarded.value from None

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
