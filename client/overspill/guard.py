"""The guard: every tool output passes it, and what is too long for the conversation leaves as a notice.

It never raises on its own account and never loses output silently: what cannot be stored is cut, and the
model is told so.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast

from overspill import calls, measure, storage
from overspill.captured import CapturedOutput
from overspill.content import examine
from overspill.guarded import Guarded
from overspill.notice import sanitised
from overspill.policy import INLINE_CHARS, INLINE_LINES, Policy
from overspill.spill import Origin, Spill, assess
from overspill.tally import Tally
from overspill.ways import Blocking, Looping, Way, finished
from overspill.wire import DEFAULT_TTL, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from overspill.client import Client
    from overspill.spill import Kept
    from overspill.sync import SyncClient
    from overspill.tally import Count, InlineSizes

P = ParamSpec("P")
R = TypeVar("R")

_MOST_TOOLS = 1000


class _Output(NamedTuple):
    """One output as the guard was given it."""

    result: Any
    tool: str
    call_id: str | None = None
    session: str | None = None
    status: str = ""
    matches_dropped: int | None = None


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
        self._looping = Looping()
        self._blocking = Blocking()
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
        quick = None if policy else self._quick(result, tool, matches_dropped)
        if quick is not None:
            return quick
        output = _Output(result, tool, call_id, session, status, matches_dropped)
        return await self._processed(self._looping, output, policy or self.policy)

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
        quick = None if policy else self._quick(result, tool, matches_dropped)
        if quick is not None:
            return quick
        output = _Output(result, tool, call_id, session, status, matches_dropped)
        return finished(self._processed(self._blocking, output, policy or self.policy))

    async def _processed(self, way: Way, output: _Output, policy: Policy) -> Guarded:
        try:
            content = None if calls.is_bypassed() else assess(output.result, output.tool, policy)
            if content is None:
                return self._counted(_inline(output), output.tool)
            size = len(content.body)
            spill = await way.work(size, Spill.of, content, policy, self._origin(output))
            kept = await way.put(self._storage, spill)
            guarded = await way.work(size, _settled, output, spill, kept)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            guarded = _unmeasured(output, error)
        return self._counted(guarded, output.tool)

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
        return await self._looping.work(guarded.bytes_before, _captured, content, guarded)

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

    def _file_based(self, inline_threshold: int, inline_lines: int) -> Policy:
        for name, limit in ("inline_threshold", inline_threshold), ("inline_lines", inline_lines):
            if limit < 0:
                raise ValueError(f"{name} must be 0 or more, not {limit}")
        policy = self.policy.limited(inline_threshold, inline_lines)
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

    def bypass(self) -> AbstractContextManager[None]:
        """Within the block, outputs pass whole: for code that calls tools and needs all that they return."""
        return calls.bypassing()

    def _quick(self, result: Any, tool: str, matches_dropped: int | None) -> Guarded | None:
        """The short cut of a short text: well under a microsecond, for nearly every output is one."""
        if type(result) is not str:
            return None
        try:
            lane = self._lanes.get(tool) or self._lane(tool)
        except TypeError:  # a tool's name that is no text
            return None
        if len(result) > lane.fits:
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

    def _origin(self, output: _Output) -> Origin:
        """Call and session as given, else those of `calling`, else a minted id and the guard's session."""
        call = calls.current()
        call_id, session = output.call_id, output.session
        if call_id is None:
            call_id = calls.minted() if call is None else call.id
        if session is None:
            session = self.session if call is None or call.session is None else call.session
        return Origin(_word(output.tool), _word(call_id), _word(session), _word(output.status))

    def _counted(self, guarded: Guarded, tool: Any) -> Guarded:
        self._tally.add(_word(tool), guarded.outcome, guarded.bytes_before, guarded.bytes_after)
        return guarded


def _settled(output: _Output, spill: Spill, kept: Kept) -> Guarded:
    notice = spill.notice(kept)
    value = spill.content.replaced(notice)
    return Guarded(
        value=value,
        outcome=kept.outcome,
        bytes_before=spill.size,
        bytes_after=_size(value),
        capture=spill.id,
        lines=spill.lines,
        reason=sanitised(kept.reason) if kept.reason else None,
        matches_dropped=output.matches_dropped,
        notice=notice,
    )


def _inline(output: _Output) -> Guarded:
    size = _size(output.result)
    return Guarded(
        value=output.result,
        outcome=Outcome.INLINE,
        bytes_before=size,
        bytes_after=size,
        matches_dropped=output.matches_dropped,
    )


def _unmeasured(output: _Output, error: Exception) -> Guarded:
    """An output that could not even be looked at, as when its own methods raise: it passes as it is."""
    return Guarded(
        value=output.result,
        outcome=Outcome.INLINE,
        bytes_before=0,
        bytes_after=0,
        reason=sanitised(f"the output could not be measured: {storage.reason(error)}"),
        matches_dropped=output.matches_dropped,
    )


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
