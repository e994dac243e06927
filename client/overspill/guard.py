"""The guard: every tool output passes it, and what is too long for the conversation leaves as a notice.

It never raises on its own account and never loses output silently: what cannot be stored is cut, and the
model is told so. Exceptions of the tools themselves pass through.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from msgspec import Struct

from overspill import measure, storage
from overspill.blocks import is_error
from overspill.captured import CapturedOutput
from overspill.content import examine
from overspill.notice import as_dict, sanitised
from overspill.policy import INLINE_CHARS, INLINE_LINES, Policy
from overspill.spill import Origin, Spill, assess
from overspill.tally import Tally
from overspill.threads import Threads
from overspill.wire import DEFAULT_TTL, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from overspill.client import Client
    from overspill.content import Content
    from overspill.notice import Notice
    from overspill.sync import SyncClient
    from overspill.tally import Count, InlineSizes
    from overspill.wire import Entry

P = ParamSpec("P")
R = TypeVar("R")

_WORTH_A_THREAD: Final = 64 * 1024
_MOST_TOOLS: Final = 1000


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


class Guarded(Struct, frozen=True, kw_only=True):
    """What the guard made of one output. `value` goes into the conversation.

    `bytes_before` and `bytes_after` are the guard's figures, before and after its cut; `lines` is counted
    for what spilled only. `matches_dropped` is the tool's own figure of what its view left out, passed on as
    given: the two have different units and are never added up. `reason` says why nothing was stored, or
    why the output could not be measured. `notice` is what stands in `value` for the text that was cut.
    """

    value: Any
    outcome: Outcome
    bytes_before: int
    bytes_after: int
    capture: str | None = None
    lines: int | None = None
    reason: str | None = None
    matches_dropped: int | None = None
    notice: Notice | None = None

    def as_response(self) -> dict[str, Any]:
        """The output wrapped: `status` and either the untouched `result` or the notice as a dict.

        `status` is `inline`, `captured` or `truncated`; `isError` stays where the result has it.
        """
        if self.notice is None:
            return {"status": str(Outcome.INLINE), "result": self.value}
        failed = {"isError": True} if is_error(self.value) else {}
        return {**as_dict(self.notice), **failed}


class _Lane(NamedTuple):
    """One tool's short cut: no text of up to `fits` characters can spill, whatever is in it."""

    fits: int
    sizes: InlineSizes


class Guard:
    """Guards the outputs of any number of tools, from any number of tasks and threads.

    Without a client nothing can be stored, and what is too long is cut. `session` is that of calls which
    bring none of their own; the client's, where it is not given.
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        policy: Policy | None = None,
        *,
        session: str | None = None,
    ) -> None:
        self.policy = Policy() if policy is None else policy
        self._storage = storage.Storage(client)
        self.session = self._storage.session if session is None else session
        self._tally = Tally()
        self._threads = Threads()
        self._lanes: dict[str, _Lane] = {}

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
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
    ) -> Guarded:
        """`result` as it may go into the conversation: the same object, or a stand-in of the same shape.

        `policy` goes before the guard's own. Waits for the service no longer than the policy's deadline.
        Raises nothing but `CancelledError`.
        """
        try:
            quick = None if policy else self._quick(result, tool, matches_dropped)
            if quick is not None:
                return quick
            policy = policy or self.policy
            content = None if _BYPASS.get() else assess(result, tool, policy)
            if content is None:
                return self._inline(result, tool, matches_dropped)
            origin = self._origin(tool, call_id, session, status)
            spill = await self._in_thread(content, Spill.of, content, policy, origin)
            stored = await self._storage.put(spill)
            settled = await self._in_thread(content, self._settled, spill, stored, matches_dropped)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            return self._unmeasured(result, tool, error, matches_dropped)
        return self._counted(settled, tool)

    def process_sync(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
    ) -> Guarded:
        """As `process`, for code without an event loop. Raises nothing."""
        try:
            quick = None if policy else self._quick(result, tool, matches_dropped)
            if quick is not None:
                return quick
            policy = policy or self.policy
            content = None if _BYPASS.get() else assess(result, tool, policy)
            if content is None:
                return self._inline(result, tool, matches_dropped)
            spill = Spill.of(content, policy, self._origin(tool, call_id, session, status))
            settled = self._settled(spill, self._storage.put_sync(spill), matches_dropped)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            return self._unmeasured(result, tool, error, matches_dropped)
        return self._counted(settled, tool)

    async def capture_output(
        self,
        content: Any,
        source: str,
        *,
        inline_threshold: int = INLINE_CHARS,
        inline_lines: int = INLINE_LINES,
        call_id: str | None = None,
        session: str | None = None,
    ) -> CapturedOutput:
        """File-based output management: `content` as it is, or a cut of it and where the rest is.

        `inline_threshold` characters and `inline_lines` lines may stay; `source` names the tool. What is
        more is kept for a day unless the policy says otherwise. Raises `ValueError` for a limit below 0,
        and else nothing but `CancelledError`.
        """
        policy = self._file_based(inline_threshold, inline_lines)
        guarded = await self.process(content, tool=source, call_id=call_id, session=session, policy=policy)
        if guarded.bytes_before < _WORTH_A_THREAD:
            return _captured(content, guarded)
        return await self._threads.run(_captured, content, guarded)

    def capture_output_sync(
        self,
        content: Any,
        source: str,
        *,
        inline_threshold: int = INLINE_CHARS,
        inline_lines: int = INLINE_LINES,
        call_id: str | None = None,
        session: str | None = None,
    ) -> CapturedOutput:
        """As `capture_output`, for code without an event loop."""
        policy = self._file_based(inline_threshold, inline_lines)
        guarded = self.process_sync(content, tool=source, call_id=call_id, session=session, policy=policy)
        return _captured(content, guarded)

    def _file_based(self, inline_chars: int, inline_lines: int) -> Policy:
        policy = self.policy.limited(inline_chars, inline_lines)
        return policy if policy.ttl is not None else replace(policy, ttl=DEFAULT_TTL)

    def wrap(self, tool: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
        """`tool` with its outputs guarded, async if it is. The call id is that of `calling`, or minted."""
        label = name or str(getattr(tool, "__name__", type(tool).__name__))
        fits, sizes = self._lane(label)
        note = sizes.note
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
            if inspect.iscoroutine(result):  # the tool is a coroutine function behind a plain one
                return self._awaited(result, label)
            return self.process_sync(result, tool=label).value

        return guarded

    async def _awaited(self, result: Coroutine[Any, Any, Any], tool: str) -> Any:
        return (await self.process(await result, tool=tool)).value

    @contextmanager
    def bypass(self) -> Iterator[None]:
        """Within the block, outputs pass whole: for code that calls tools and needs all that they return."""
        token = _BYPASS.set(True)
        try:
            yield
        finally:
            _BYPASS.reset(token)

    def _quick(self, result: Any, tool: str, matches_dropped: int | None) -> Guarded | None:
        """The short cut of a short text: well under a microsecond, for nearly every output is one."""
        lane = self._lanes.get(tool) or self._lane(tool)
        if type(result) is not str or len(result) > lane.fits:
            return None
        size = lane.sizes.note(result)
        return Guarded(
            value=result,
            outcome=Outcome.INLINE,
            bytes_before=size,
            bytes_after=size,
            matches_dropped=matches_dropped,
        )

    def _lane(self, tool: str) -> _Lane:
        if tool in self._lanes:
            return self._lanes[tool]
        lane = _Lane(measure.surely_fits(self.policy.limits(tool)), self._tally.inline(tool))
        if len(self._lanes) < _MOST_TOOLS:
            self._lanes[tool] = lane
        return lane

    def _origin(self, tool: str, call_id: str | None, session: str | None, status: str) -> Origin:
        """Call and session as given, else those of `calling`, else a minted id and the guard's session."""
        call = _CALL.get()
        if call_id is None:
            call_id = f"call_{secrets.token_hex(12)}" if call is None else call.id
        if session is None:
            session = self.session if call is None or call.session is None else call.session
        return Origin(_word(tool), _word(call_id), _word(session), _word(status))

    async def _in_thread(self, content: Content, work: Callable[..., R], *args: Any) -> R:
        """`work` in a thread where the size of `content` would hold up the event loop."""
        if len(content.body) < _WORTH_A_THREAD:
            return work(*args)
        return await self._threads.run(work, *args)

    def _settled(self, spill: Spill, stored: Entry | str, matches_dropped: int | None) -> Guarded:
        lost = sanitised(stored) if isinstance(stored, str) else None
        notice = spill.truncated(stored) if isinstance(stored, str) else spill.captured(stored.expires)
        value = spill.content.replaced(notice)
        return Guarded(
            value=value,
            outcome=Outcome.CAPTURED if lost is None else Outcome.TRUNCATED,
            bytes_before=spill.size,
            bytes_after=_size(value),
            capture=spill.id,
            lines=spill.lines,
            reason=lost,
            matches_dropped=matches_dropped,
            notice=notice,
        )

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

    def _unmeasured(self, result: Any, tool: str, error: Exception, matches_dropped: int | None) -> Guarded:
        """An output that could not even be looked at, as when its own methods raise: it passes as it is."""
        guarded = Guarded(
            value=result,
            outcome=Outcome.INLINE,
            bytes_before=0,
            bytes_after=0,
            reason=sanitised(f"the output could not be measured: {storage.reason(error)}"),
            matches_dropped=matches_dropped,
        )
        return self._counted(guarded, _word(tool))

    def _counted(self, guarded: Guarded, tool: str) -> Guarded:
        self._tally.add(tool, guarded.outcome, guarded.bytes_before, guarded.bytes_after)
        return guarded


def _word(name: Any) -> str:
    """`name` as text: frameworks hand on ids that are numbers, as JSON-RPC's, and tools without a name."""
    return name if isinstance(name, str) else "" if name is None else str(name)


def _captured(content: Any, guarded: Guarded) -> CapturedOutput:
    if guarded.reason is not None and guarded.notice is None:  # it could not even be looked at
        return CapturedOutput(content=content, reason=guarded.reason)
    return CapturedOutput.of(content, guarded.notice, guarded.reason)


def _size(value: Any) -> int:
    """Bytes of all text in `value`; 0 for what has none."""
    content = examine(value)
    if content is None:
        return 0
    return measure.size(content.body) if isinstance(content.body, str) else len(content.body)
