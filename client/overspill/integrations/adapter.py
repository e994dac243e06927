"""The part that all adapters share: a guard, the tools that read what it stores, and each call of a tool."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from overspill.agent_tools.reading_tools import reading_tools
from overspill.guard import call_context
from overspill.guard.environment_policy import environment_policy
from overspill.guard.exemption import policy_for_foreign_tool, policy_for_own_tool
from overspill.guard.guard import Guard
from overspill.guard.policy_defaults import READING_TOOLS
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy


_ANOTHER_GUARD: Final = (
    "another guard has this agent, one that it can reach, or one of its tools or clients:"
    " copy agents before you guard them, and give each guard copies of its own"
)


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

    def call(
        self,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        *,
        is_own: bool | None = False,
        passing: tuple[type[Exception], ...] = (),
    ) -> ToolCall:
        """Return a call of a tool. It gets a random id if it has none.

        `is_own`: the tool is one of the `reading_tools`. A tool that only has the name of one is guarded as
        all others are. None: it is unknown whose tool it is. Its result then passes if it is as short as the
        answers of these tools. `passing` are classes of exceptions that a framework uses for control flow.
        """
        return ToolCall(self.guard, tool, call_id or call_context.minted(), session, is_own, passing)


def adapter_for(guard: Guard | None, adapters: Iterable[Adapter]) -> Adapter:
    """Return the adapter for an agent, of whose tools some are guarded by `adapters`.

    Without a guard it is one of these, if there is any. Raises `ValueError` if `guard` is not that of each:
    outputs of these tools would be stored with the key of another.
    """
    found = list(adapters)
    if guard is not None and any(each.guard is not guard for each in found):
        raise ValueError(_ANOTHER_GUARD)
    return found[0] if found else Adapter(guard)


@dataclass
class ToolCall:
    """One call of a tool: a block for `with` or `async with` in which it runs, and what guards its result.

    What the tool captures itself belongs to the call. An exception that it raises goes on with a shorter
    message if that is too long; those of the classes in `passing` go on as they are.
    """

    guard: Guard
    tool: str
    id: str
    session: str | None
    is_own: bool | None
    passing: tuple[type[Exception], ...]
    names_captures: bool = True
    _context: AbstractContextManager[None] = field(init=False)

    async def run(self, running: Awaitable[Any]) -> Guarded:
        """Wait for the tool's result, in the block, and return the guard's result for it."""
        async with self:
            result = await running
        return await self.process(result)

    async def process(self, result: Any, *, is_printed: bool = False) -> Guarded:
        """Return what the guard makes of a result.

        `is_printed`: the framework shows a model the text of any object, and the notice alone may replace an
        object.
        """
        with call_context.guarding_tool():
            return await self.guard.process(result, **self._named(result), is_printed=is_printed)

    def process_sync(self, result: Any, *, is_printed: bool = False) -> Guarded:
        """Do the same as `process`, for code without an event loop."""
        with call_context.guarding_tool():
            return self.guard.process_sync(result, **self._named(result), is_printed=is_printed)

    def raising(self) -> ToolCall:
        """Return a block for exceptions alone: a generator may go on in another context."""
        return replace(self, names_captures=False)

    def _named(self, result: Any) -> dict[str, Any]:
        policy = self._policy(result)
        return {"tool": self.tool, "call_id": self.id, "session": self.session, "policy": policy}

    def _policy(self, result: Any) -> Policy | None:
        if self.is_own or isinstance(result, OwnAnswer):
            return policy_for_own_tool(self.guard.policy_for(self.session), self.tool)
        if self.is_own is None or self.tool not in READING_TOOLS:
            return None
        return policy_for_foreign_tool(self.guard.policy_for(self.session))

    def __enter__(self) -> None:
        calling = call_context.calling(self.id, self.session)
        self._context = calling if self.names_captures else nullcontext()
        self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)
        if self._is_guarded(error):
            _raise_shortened(error, self.process_sync(error))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)
        if self._is_guarded(error):
            _raise_shortened(error, await self.process(error))

    def _is_guarded(self, error: BaseException | None) -> TypeGuard[Exception]:
        return isinstance(error, Exception) and not isinstance(error, self.passing)


def _raise_shortened(error: Exception, guarded: Guarded) -> None:
    """Raise the shortened error. If there is none, the error itself goes on."""
    if guarded.value is not error:
        raise guarded.value from None
