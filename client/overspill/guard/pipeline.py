"""How one output passes the guard: looked at, decided on, kept, replaced, counted.

Nothing here raises on its own account, and nothing is lost silently: what cannot be stored is cut, and the
model is told so.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from overspill.delivery.storage import NO_CLIENT, reason
from overspill.execution import threads
from overspill.guard.assessment import saves_enough, surely_saves_enough
from overspill.guard.counts.report_job import ReportJob
from overspill.guard.counts.tally import Tally
from overspill.guard.decisions import Decision, Decisions
from overspill.guard.duplicates import Duplicates
from overspill.guard.guarded import Guarded
from overspill.guard.spill import Spill, escape_factor, notice_overhead
from overspill.guard.turn import PendingResult
from overspill.previews import notice
from overspill.previews.case import Previews
from overspill.previews.cut import HEAD
from overspill.previews.notice import Kept
from overspill.shapes.chunk_stream import StreamShape
from overspill.shapes.content import examine, is_quick, size_of
from overspill.shapes.fields import Unchangeable
from overspill.shapes.parts import sole_text_of
from overspill.shapes.status import status_of
from overspill.text import measure
from overspill.text.limits import (
    UNLIMITED,
    allowed_bytes,
    has_more_lines,
    surely_fitting_bytes,
    surely_fitting_chars,
)
from overspill.text.measure import extent_of
from overspill.text.reasons import one_safe_line
from overspill.text.rendering import printable
from overspill.transfer import call_context
from overspill.transfer.store_request import Origin
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from overspill.delivery.storage import Storage
    from overspill.guard.counts.tally import InlineSizes
    from overspill.guard.executors import Executor
    from overspill.guard.policy import Policy
    from overspill.guard.turn import RunningCall
    from overspill.shapes.content import Shape
    from overspill.text.limits import Limits

TOO_MUCH_TOGETHER: Final = "too long beside the other results of this turn"
_NOWHERE: Final = Kept(outcome=Outcome.TRUNCATED, reason=NO_CLIENT)
_SAMPLE: Final = notice.truncated(
    notice.Facts(id="", tool="", size=0, lines=0, preview="", reader=""), "a sample"
)
_MOST_TOOLS: Final = 1000
_SHORT: Final = 128 * 1024
"""Characters up to which a text is measured on an event loop."""


class Output(NamedTuple):
    """One output as the guard was given it; `call` is the running call of a turn that it belongs to.

    A call id that `is_minted` was made up here.
    """

    result: Any
    tool: str
    policy: Policy
    call_id: str | None = None
    session: str | None = None
    status: str = ""
    matches_dropped: int | None = None
    call: RunningCall | None = None
    is_minted: bool = False


class _Verdict(NamedTuple):
    """Why an output spills, and how many bytes it may then have; it stays where there is no reason."""

    why: str = ""
    room: int = UNLIMITED
    previews: Previews | None = None


class FastPath:
    """One tool's short cut: texts, and messages of one, that are short or seen at once to stay inline."""

    __slots__ = ("_fits", "_max_bytes", "_max_chars", "_max_lines", "_sizes", "_whose")

    def __init__(self, limits: Limits, sizes: InlineSizes, whose: tuple[Pipeline, str] | None = None) -> None:
        self._whose = whose
        self._fits = surely_fitting_chars(limits)
        self._max_bytes = min(_SHORT, surely_fitting_bytes(limits))
        self._max_chars = UNLIMITED if limits.max_chars is None else limits.max_chars
        self._max_lines = limits.max_lines
        self._sizes = sizes

    def __reduce__(self) -> tuple[Any, ...]:
        """Return where another process finds it: in the guard that was sent with it."""
        assert self._whose is not None
        pipeline, tool = self._whose
        return methodcaller("fast_path", tool), (pipeline,)

    def inline_size(self, result: Any) -> int | None:
        """The bytes of a result that stays inline, which is counted; None for one that must be looked at."""
        text = result if type(result) is str else sole_text_of(result)
        if text is None:
            return None
        length = len(text)
        if text.isascii():
            size = length
        elif length <= _SHORT:
            size = measure.size(text)
        else:
            return None
        if length > self._fits and (
            size > self._max_bytes
            or length > self._max_chars
            or (length > self._max_lines and has_more_lines(text, self._max_lines))
        ):
            return None
        self._sizes.note(size)
        return size


class Pipeline:
    def __init__(self, policy: Policy, storage: Storage, session: str) -> None:
        self.policy = policy
        self.storage = storage
        self.session = session
        self.tally: Tally = Tally()
        self.reports: ReportJob = ReportJob(storage, self.tally)
        self.tally.on_outputs = self.reports.start
        self._duplicates = Duplicates()
        self._decisions = Decisions()
        self._fast_paths: dict[str, FastPath] = {}
        self.owner: object = None
        """The guard, which goes along where a tool that it wraps is sent to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("_pipeline"), (self.owner,)

    def fast_path(self, tool: str) -> FastPath:
        if tool in self._fast_paths:
            return self._fast_paths[tool]
        path = FastPath(self.policy.limits(tool), self.tally.inline(tool), (self, tool))
        if len(self._fast_paths) < _MOST_TOOLS:
            self._fast_paths[tool] = path
        return path

    def quick(self, result: Any, tool: str, matches_dropped: int | None) -> Guarded | None:
        """The short cut of a short text: some microseconds at most, for nearly every output is one."""
        if type(tool) is not str:
            return None
        path = self._fast_paths.get(tool) or self.fast_path(tool)
        size = path.inline_size(result)
        if size is None:
            return None
        return Guarded(
            value=result,
            outcome=Outcome.INLINE,
            bytes_before=size,
            bytes_after=size,
            matches_dropped=matches_dropped,
        )

    async def process(self, executor: Executor, output: Output) -> Guarded:
        """The output as it may go into the conversation."""
        try:
            content, flow = examine(output.result), self.flow(output)
            verdict = _Verdict() if content is None else await self._verdict(executor, flow, output, content)
            if content is None or not verdict.why:
                guarded = _inline(output, await _measured(executor, flow, content))
            else:
                guarded = await self._spilled(executor, flow, output, content, verdict)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            guarded = _unmeasured(output, error)
        self._count(output, guarded)
        return guarded

    async def replaced(self, executor: Executor, output: Output, content: StreamShape) -> Guarded:
        """The notice in the place of a stream that is too long; all of it where nothing is gained by that."""
        try:
            flow = self.flow(output)
            if await self._is_worth_it(executor, flow, output, content):
                guarded = await self._spilled(executor, flow, output, content, _Verdict(notice.TOO_LONG))
            else:
                guarded = _inline(_whole(output, content), size_of(content))
        except Exception as error:  # noqa: BLE001  (as above)
            guarded = _lost(output, content, error)
        self._count(output, guarded)
        return guarded

    def flow(self, output: Output) -> Hashable:
        """Whose turn an output uses: that of its session, of this guard's."""
        return id(self), output.session

    def count(
        self, output: Output, outcome: Outcome, before: int, after: int, *, is_left_whole: bool = False
    ) -> None:
        """Count one output that has passed, by its bytes before and after."""
        self.tally.add(output.tool, outcome, before, after, is_left_whole=is_left_whole)
        self.reports.start()
        if outcome is not Outcome.INLINE:
            self.reports.hurry()

    def _count(self, output: Output, guarded: Guarded) -> None:
        is_left_whole = guarded.outcome is Outcome.INLINE and guarded.reason is not None
        self.count(
            output,
            guarded.outcome,
            guarded.bytes_before,
            guarded.bytes_after,
            is_left_whole=is_left_whole,
        )

    async def _verdict(self, executor: Executor, flow: Hashable, output: Output, content: Shape) -> _Verdict:
        """Beside other results of its turn, one within its limits may go too, or a long one get less room."""
        if call_context.is_bypassed():
            return _Verdict()
        is_exempt = output.tool in output.policy.exempt
        limits = output.policy.limits(output.tool)
        is_long = not is_exempt and await executor.is_too_long(flow, content, limits)
        previews = Previews() if is_long else None
        if is_long:
            is_long = await self._is_worth_it(executor, flow, output, content, previews)
        if output.call is None:
            return _Verdict(notice.TOO_LONG if is_long else "", previews=previews)
        offer = await executor.run(flow, _offer, output, content, is_long, is_exempt)
        room = await executor.decide(output.call, offer)
        if room is not None:
            return _Verdict(notice.TOO_LONG if offer.exceeds else TOO_MUCH_TOGETHER, room, previews)
        return _Verdict(notice.TOO_LONG if is_long else "", offer.size, previews)

    async def _is_worth_it(
        self,
        executor: Executor,
        flow: Hashable,
        output: Output,
        content: Shape,
        previews: Previews | None = None,
    ) -> bool:
        """Whether the conversation gains by a notice in the output's place."""
        if surely_saves_enough(content, output.policy):
            return True
        check = partial(saves_enough, is_kept=self.storage.can_keep, previews=previews)
        return await executor.run(flow, check, content, output.policy, Origin(output.tool, "", ""))

    async def _spilled(
        self, executor: Executor, flow: Hashable, output: Output, content: Shape, verdict: _Verdict
    ) -> Guarded:
        """Store the output and make its notice: in the loop thread, once its turn has come."""
        prepare = partial(self._prepared, output, content, verdict, self.origin(output))
        if not self.storage.can_keep:
            return await executor.run(flow, self._unstored, output, prepare)
        try:
            stored = self.storage.begin(self._stored(flow, output, len(content.body), prepare))
        except RuntimeError:  # the process has threads enough, or is ending
            return await executor.run(flow, self._stored_here, output, prepare)
        return await executor.result(stored)

    async def _stored(
        self, flow: Hashable, output: Output, size: int, prepare: Callable[[], Spill | Guarded]
    ) -> Guarded:
        """For the loop thread."""
        async with self.storage.turn(flow, size) as turn:
            spill = await threads.run_fairly(flow, size, prepare)
            if isinstance(spill, Guarded):
                return spill
            kept = await self.storage.put(spill.request, turn)
            return await threads.run_fairly(flow, size, self._settled, output, spill, kept)

    def _stored_here(self, output: Output, prepare: Callable[[], Spill | Guarded]) -> Guarded:
        spill = prepare()
        if isinstance(spill, Guarded):
            return spill
        return self._settled(output, spill, self.storage.keep_here(spill.request))

    def _unstored(self, output: Output, prepare: Callable[[], Spill | Guarded]) -> Guarded:
        spill = prepare()
        return spill if isinstance(spill, Guarded) else self._settled(output, spill, _NOWHERE)

    def _prepared(self, output: Output, content: Shape, verdict: _Verdict, origin: Origin) -> Spill | Guarded:
        """Encode and hash what is to be stored; an output that stays after all is given back."""
        spill = Spill.of(
            content,
            output.policy if output.call is None else output.policy.with_short_notices(),
            origin,
            why=verdict.why,
            room=verdict.room,
            identify=self.storage.can_keep,
            previews=verdict.previews,
        )
        problem = _unchangeable(spill)
        return spill if problem is None else _left_whole(output, content, problem)

    def _settled(self, output: Output, spill: Spill, kept: Kept) -> Guarded:
        try:
            return self._noticed(output, spill, kept)
        except MemoryError:  # what is stored must not be called lost
            return self._noticed(output, _with_small_preview(spill), kept)

    def _noticed(self, output: Output, spill: Spill, kept: Kept) -> Guarded:
        kept, same_as = self._decisions.first(spill.id, Decision(kept, self._repeated(spill, kept)))
        made = spill.notice(kept, same_as=same_as)
        value = spill.content.replaced(made)
        if spill.is_too_long(value):
            return _inline(_whole(output, spill.content), size_of(spill.content))
        return Guarded(
            value=value,
            outcome=kept.outcome,
            bytes_before=max(spill.size, size_of(spill.content)),
            bytes_after=_passed(spill.content) + _size(value),
            capture=made.id or None,
            lines=spill.lines,
            reason=one_safe_line(kept.reason) if kept.reason else None,
            matches_dropped=output.matches_dropped,
            notice=made,
        )

    def _repeated(self, spill: Spill, kept: Kept) -> str | None:
        """The earlier capture of the session with the same bytes, if there is one."""
        if kept.outcome is Outcome.TRUNCATED:
            return None
        session, content = spill.origin.session, spill.sha256
        earlier = self._duplicates.earlier(session, content, spill.id)
        self._duplicates.remember(session, content, spill.id, kept.expires)
        return earlier

    def origin(self, output: Output) -> Origin:
        """Call and session as given, else those of `calling`, else a minted id and the guard's session."""
        call = call_context.current()
        call_id, session, is_minted = output.call_id, output.session, output.is_minted
        if call_id is None:
            is_minted = call is None
            call_id = call_context.minted() if call is None else call.id
        if session is None:
            session = self.session if call is None or call.session is None else call.session
        status = word(output.status) or status_of(output.result)
        return Origin(output.tool, word(call_id), word(session), status, is_minted)


def _with_small_preview(spill: Spill) -> Spill:
    """A spill of which nothing but the beginning is looked at."""
    return dataclasses.replace(
        spill, policy=dataclasses.replace(spill.policy, strategy=HEAD), previews=Previews()
    )


def _offer(output: Output, content: Shape, is_long: bool, is_exempt: bool) -> PendingResult:  # noqa: FBT001
    """A long result in a form that fills its limits counts as what they allow, and can still do with less."""
    policy, call_id, size = output.policy, word(output.call_id), size_of(content)
    fills = is_long and policy.notice_style.fills
    if fills:
        size = min(size, allowed_bytes(policy.limits(output.tool), content.body))
    if is_exempt or content.is_guarded():
        return PendingResult(size, None, is_long and not fills, call_id)
    least = notice_overhead(content)
    spilled = least + policy.preview_bytes * escape_factor(content)
    return PendingResult(size, spilled, is_long and not fills, call_id, least)


async def _measured(executor: Executor, flow: Hashable, content: Shape | None) -> int:
    if content is None:
        return 0
    return size_of(content) if is_quick(content) else await executor.run(flow, size_of, content)


def _whole(output: Output, content: Shape) -> Output:
    """The output as it may stay; of a stream, which is read already, all that came."""
    return output._replace(result=content.whole()) if isinstance(content, StreamShape) else output


def _inline(output: Output, size: int) -> Guarded:
    return Guarded(
        value=output.result,
        outcome=Outcome.INLINE,
        bytes_before=size,
        bytes_after=size,
        matches_dropped=output.matches_dropped,
    )


def _unchangeable(spill: Spill) -> Unchangeable | None:
    """Why nothing can stand in the output's place, found out before anything is stored; None where it can."""
    try:
        spill.content.replaced(_SAMPLE)
    except Unchangeable as problem:
        return problem
    return None


def _left_whole(output: Output, content: Shape, problem: Unchangeable) -> Guarded:
    """An output of whose class no other can be made: it passes as it is."""
    guarded = _inline(output, size_of(content))
    return replace(guarded, reason=one_safe_line(f"no shorter copy of it can be made: {problem}"))


def _unmeasured(output: Output, error: Exception) -> Guarded:
    """An output that could not even be looked at: it passes as it is."""
    return Guarded(
        value=output.result,
        outcome=Outcome.INLINE,
        bytes_before=0,
        bytes_after=0,
        reason=one_safe_line(f"the output could not be measured: {reason(error)}"),
        matches_dropped=output.matches_dropped,
    )


def _lost(output: Output, content: Shape, error: Exception) -> Guarded:
    """An output that is gone and cannot even be shown in part."""
    size, lines = extent_of(content.body)
    facts = notice.Facts(
        id="", tool=output.tool, size=size, lines=lines, preview="", reader=output.policy.reader
    )
    made = notice.truncated(facts, reason(error))
    value = content.replaced(made)
    return Guarded(
        value=value,
        outcome=made.outcome,
        bytes_before=size,
        bytes_after=_passed(content) + _size(value),
        lines=lines,
        reason=one_safe_line(reason(error)),
        matches_dropped=output.matches_dropped,
        notice=made,
    )


def word(name: Any) -> str:
    """`name` as text: frameworks hand on ids that are numbers, as JSON-RPC's, and tools without a name."""
    return "" if name is None else printable(name)


def _passed(content: Shape) -> int:
    """Bytes of a stream that were in the conversation before it was too long."""
    return content.passed if isinstance(content, StreamShape) else 0


def _size(value: Any) -> int:
    """Bytes of all text in `value`; 0 for what has none."""
    content = examine(value)
    return 0 if content is None else size_of(content)
