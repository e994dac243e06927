"""What all adapters share: a guard, and the tools that read what it stores."""

from __future__ import annotations

from contextlib import nullcontext
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

    async def guarded(
        self, running: Awaitable[Any], *, passing: tuple[type[Exception], ...] = (), **call: Any
    ) -> Guarded:
        """Wait for a tool's call, and return what the guard makes of its result; `call` as in `process`.

        Raises what the call raises: see `calling`.
        """
        async with self.calling(passing=passing, **call):
            result = await running
        return await self.process(result, **call)

    def calling(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> ToolBlock:
        """Return the block in which a tool is called; `call` as in `process`.

        What the tool captures belongs to that call. Its exceptions go on as `raising` says.
        """
        return ToolBlock(self, call, passing, call_context.calling(call["call_id"], call["session"]))

    def raising(self, *, passing: tuple[type[Exception], ...] = (), **call: Any) -> ToolBlock:
        """Return a block that raises what a tool raises, with its message shortened if it is too long.

        The classes of `passing` stay as they are: those that a framework uses for control flow. `call` as in
        `process`.
        """
        return ToolBlock(self, call, passing, nullcontext())

    async def process(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str,
        session: str | None = None,
        is_own: bool | None = False,
        is_printed: bool = False,
    ) -> Guarded:
        """Return what the guard makes of a result. `is_own`: it is of one of the `reading_tools`.

        A tool that only has the name of one is guarded as all others are. None: nobody knows whose it is. It
        then passes if it is as short as answers of these tools are. `is_printed`: the framework shows a model
        the text of any object, and the notice may stand alone in the place of one.
        """
        policy = self._policy(result, tool, session, is_own=is_own)
        with call_context.guarding_tool():
            return await self.guard.process(
                result, tool=tool, call_id=call_id, session=session, policy=policy, is_printed=is_printed
            )

    def process_sync(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str,
        session: str | None = None,
        is_own: bool | None = False,
        is_printed: bool = False,
    ) -> Guarded:
        """Do the same as `process`, for code without an event loop."""
        policy = self._policy(result, tool, session, is_own=is_own)
        with call_context.guarding_tool():
            return self.guard.process_sync(
                result, tool=tool, call_id=call_id, session=session, policy=policy, is_printed=is_printed
            )

    def _policy(self, result: Any, tool: str, session: str | None, *, is_own: bool | None) -> Policy | None:
        if is_own or isinstance(result, OwnAnswer):
            return policy_for_own_tool(self.guard.policy_for(session), tool)
        if is_own is None or tool not in READING_TOOLS:
            return None
        return policy_for_foreign_tool(self.guard.policy_for(session))


def adapter_for(guard: Guard | None, known: Iterable[Adapter]) -> Adapter:
    """Return the adapter for an agent, of whose tools some are guarded by the adapters that are `known`.

    Without a guard it is one of these, if there is any. Raises `ValueError` if `guard` is not that of each:
    outputs of these tools would be stored with the key of another.
    """
    found = list(known)
    if guard is not None and any(each.guard is not guard for each in found):
        raise ValueError(_ANOTHER_GUARD)
    return found[0] if found else Adapter(guard)


class ToolBlock:
    """The block of one tool call, for `with` or `async with`: see `Adapter.calling` and `Adapter.raising`."""

    def __init__(
        self,
        adapter: Adapter,
        call: dict[str, Any],
        passing: tuple[type[Exception], ...],
        context: AbstractContextManager[None],
    ) -> None:
        self._adapter, self._call, self._passing, self._context = adapter, call, passing, context

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)
        if self._is_guarded(error):
            _raise_shortened(error, self._adapter.process_sync(error, **self._call))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)
        if self._is_guarded(error):
            _raise_shortened(error, await self._adapter.process(error, **self._call))

    def _is_guarded(self, error: BaseException | None) -> TypeGuard[Exception]:
        return isinstance(error, Exception) and not isinstance(error, self._passing)


def _raise_shortened(error: Exception, guarded: Guarded) -> None:
    """Raise what stands for the error. The error itself goes on without that."""
    if guarded.value is not error:
        raise guarded.value from None
