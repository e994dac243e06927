"""The guard: every tool output passes it, and what is too long for the conversation leaves as a notice.

It never raises on its own account and never loses output silently: what cannot be stored is cut, and the
model is told so. Exceptions of the tools themselves pass through.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import secrets
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from overspill import measure
from overspill.content import examine
from overspill.errors import OverspillError
from overspill.notice import sanitised
from overspill.policy import Policy
from overspill.spill import Spill, assess
from overspill.tally import Tally
from overspill.threads import Threads
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.client import Client
    from overspill.content import Content
    from overspill.sync import SyncClient
    from overspill.tally import Count
    from overspill.wire import Entry

P = ParamSpec("P")
R = TypeVar("R")

NO_CLIENT: Final = "no Overspill service is configured"
_WORTH_A_THREAD: Final = 64 * 1024


class Call(NamedTuple):
    id: str
    session: str | None = None


_CALL: ContextVar[Call | None] = ContextVar("overspill_call", default=None)
_BYPASS: ContextVar[bool] = ContextVar("overspill_bypass", default=False)


@contextmanager
def calling(call_id: str, session: str | None = None) -> Iterator[None]:
    """Within the block, outputs belong to this tool call: for adapters, which know ids that tools do not."""
    token = _CALL.set(Call(call_id, session))
    try:
        yield
    finally:
        _CALL.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What the guard made of one output. `value` goes into the conversation.

    `bytes_before` and `bytes_after` are the guard's figures, before and after its cut; `lines` is counted
    for what spilled only. `matches_dropped` is the tool's own figure of what its view left out, passed on as
    given: the two have different units and are never added up. `reason` says why nothing was stored.
    """

    value: Any
    outcome: Outcome
    bytes_before: int
    bytes_after: int
    capture: str | None = None
    lines: int | None = None
    reason: str | None = None
    matches_dropped: int | None = None


class Guard:
    """Guards the outputs of any number of tools, from any number of tasks and threads.

    Without a client nothing can be stored, and what is too long is cut. `session` is that of calls which
    bring none of their own.
    """

    def __init__(
        self, client: Client | SyncClient | None = None, policy: Policy | None = None, *, session: str = ""
    ) -> None:
        self.policy = Policy() if policy is None else policy
        self.session = session
        self._client = client
        self._tally = Tally()
        self._threads = Threads()

    @property
    def stats(self) -> dict[tuple[str, Outcome], Count]:
        """What passed so far, by tool and outcome."""
        return self._tally.counts()

    async def process(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        matches_dropped: int | None = None,
    ) -> Guarded:
        """`result` as it may go into the conversation: the same object, or a stand-in of the same shape.

        Waits for the service no longer than the policy's deadline. Raises nothing but `CancelledError`.
        """
        try:
            content = self._spilling(result, tool)
            if content is None:
                return self._inline(result, tool, matches_dropped)
            spill = await self._spill(content, tool, call_id, session)
            stored = await self._store(spill)
            settled = await self._in_thread(spill.size, self._settled, spill, stored, matches_dropped)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            return self._unguarded(result, tool, error, matches_dropped)
        return self._counted(settled, tool)

    def process_sync(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        matches_dropped: int | None = None,
    ) -> Guarded:
        """As `process`, for code without an event loop. Raises nothing."""
        try:
            content = self._spilling(result, tool)
            if content is None:
                return self._inline(result, tool, matches_dropped)
            call_id, session = self._identity(call_id, session)
            spill = Spill.of(content, self.policy, tool=tool, call_id=call_id, session=session)
            settled = self._settled(spill, self._store_sync(spill), matches_dropped)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            return self._unguarded(result, tool, error, matches_dropped)
        return self._counted(settled, tool)

    def wrap(self, tool: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
        """`tool` with its outputs guarded, async if it is. The call id is that of `calling`, or minted."""
        label = name or str(getattr(tool, "__name__", type(tool).__name__))
        fits, note = measure.surely_fits(self.policy.limits(label)), self._tally.inline(label).note
        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def guarded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                result = await tool(*args, **kwargs)
                if type(result) is str and len(result) <= fits:
                    note(result)
                    return result
                return (await self.process(result, tool=label)).value

            return cast("Callable[P, R]", guarded_async)

        @functools.wraps(tool)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            result: Any = tool(*args, **kwargs)
            if type(result) is str and len(result) <= fits:
                note(result)
                return result
            return self.process_sync(result, tool=label).value

        return guarded

    @contextmanager
    def bypass(self) -> Iterator[None]:
        """Within the block, outputs pass whole: for code that calls tools and needs all that they return."""
        token = _BYPASS.set(True)
        try:
            yield
        finally:
            _BYPASS.reset(token)

    def _spilling(self, result: Any, tool: str) -> Content | None:
        return None if _BYPASS.get() else assess(result, tool, self.policy)

    async def _spill(self, content: Content, tool: str, call_id: str | None, session: str | None) -> Spill:
        call_id, session = self._identity(call_id, session)
        work = functools.partial(Spill.of, content, self.policy, tool=tool, call_id=call_id, session=session)
        return await self._in_thread(len(content.body), work)

    def _identity(self, call_id: str | None, session: str | None) -> tuple[str, str]:
        """The call and session of an output: as given, else of `calling`, else minted and the guard's."""
        call = _CALL.get()
        if call_id is None:
            call_id = f"call_{secrets.token_hex(12)}" if call is None else call.id
        if session is None:
            session = self.session if call is None or call.session is None else call.session
        return call_id, session

    async def _in_thread(self, size: int, work: Callable[..., R], *args: Any) -> R:
        """`work` in a thread where `size` bytes would hold up the event loop."""
        if size < _WORTH_A_THREAD:
            return work(*args)
        return await self._threads.run(work, *args)

    async def _store(self, spill: Spill) -> Entry | str:
        """The stored capture's entry, or why there is none."""
        if self._client is None:
            return NO_CLIENT
        deadline = self.policy.deadline(spill.size)
        try:
            async with asyncio.timeout(deadline):
                return await cast("Client", self._client).put(spill.data, **self._metadata(spill))
        except TimeoutError:
            return f"the service did not answer within {deadline:.0f} s"
        except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
            return _reason(error)

    def _store_sync(self, spill: Spill) -> Entry | str:
        if self._client is None:
            return NO_CLIENT
        try:
            return cast("SyncClient", self._client).put(spill.data, **self._metadata(spill))
        except Exception as error:  # noqa: BLE001  (the boundary: whatever fails becomes a reason)
            return _reason(error)

    def _metadata(self, spill: Spill) -> dict[str, Any]:
        return {
            "id": spill.id,
            "call_id": spill.call_id,
            "session": spill.session,
            "tool": spill.tool,
            "content_type": spill.content.content_type,
            "ttl": self.policy.ttl,
        }

    def _settled(self, spill: Spill, stored: Entry | str, matches_dropped: int | None) -> Guarded:
        lost = isinstance(stored, str)
        value = spill.truncated(stored) if isinstance(stored, str) else spill.captured(stored.expires)
        return Guarded(
            value=value,
            outcome=Outcome.TRUNCATED if lost else Outcome.CAPTURED,
            bytes_before=spill.size,
            bytes_after=_size(value),
            capture=spill.id,
            lines=spill.lines,
            reason=sanitised(stored) if isinstance(stored, str) else None,
            matches_dropped=matches_dropped,
        )

    def _unguarded(self, result: Any, tool: str, error: Exception, matches_dropped: int | None) -> Guarded:
        """An output that could not even be measured, as when its own methods raise: it passes as it is."""
        reason = f"the output could not be measured: {sanitised(_reason(error))}"
        guarded = Guarded(
            value=result,
            outcome=Outcome.INLINE,
            bytes_before=0,
            bytes_after=0,
            reason=reason,
            matches_dropped=matches_dropped,
        )
        return self._counted(guarded, tool)

    def _inline(self, result: Any, tool: str, matches_dropped: int | None) -> Guarded:
        size = _size(result)
        guarded = Guarded(
            value=result,
            outcome=Outcome.INLINE,
            bytes_before=size,
            bytes_after=size,
            matches_dropped=matches_dropped,
        )
        return self._counted(guarded, tool)

    def _counted(self, guarded: Guarded, tool: str) -> Guarded:
        self._tally.add(tool, guarded.outcome, guarded.bytes_before, guarded.bytes_after)
        return guarded


def _size(value: Any) -> int:
    """Bytes of all text in `value`; 0 for what has none."""
    content = examine(value)
    if content is None:
        return 0
    return measure.size(content.body) if isinstance(content.body, str) else len(content.body)


def _reason(error: Exception) -> str:
    if isinstance(error, OverspillError):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}"
