"""The steps that one output takes through the guard: examine, decide, store, replace, count.

Nothing here raises an error of its own. An output that cannot be stored is cut, and its notice says so.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.delivery.storage import NO_CLIENT
from overspill.execution import threads
from overspill.execution.loop_thread import NoLoop
from overspill.guard import call_context, exemption
from overspill.guard.assessment import pending_result, saves_enough, surely_saves_enough
from overspill.guard.bursts import Bursts
from overspill.guard.counts.report_job import ReportJob
from overspill.guard.counts.tally import Tally
from overspill.guard.decisions import Decision, Decisions
from overspill.guard.duplicates import Duplicates, Earlier
from overspill.guard.fast_path import FastPath
from overspill.guard.guarded import Guarded
from overspill.guard.intake import Intake
from overspill.guard.results import (
    as_read,
    inline,
    left_whole,
    lost,
    masked_inline,
    passed_bytes,
    text_bytes,
    unmeasured,
    why_unchangeable,
)
from overspill.guard.spill import Spill
from overspill.guard.spill_span import spilling
from overspill.guard.trial import oversized
from overspill.previews import notice
from overspill.previews.case import Previews
from overspill.previews.notice import Kept
from overspill.shapes.content import examine, is_quick, size_of
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.spools.store_request import Origin
from overspill.text.limits import UNLIMITED
from overspill.text.reasons import one_safe_line
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from overspill.delivery.storage import Storage
    from overspill.guard.executors import Executor
    from overspill.guard.output import Output
    from overspill.guard.policy import Policy
    from overspill.guard.trial import Oversized, Trial
    from overspill.shapes.content import Shape
    from overspill.shapes.stream_shapes import StreamShape

TOO_MUCH_TOGETHER: Final = "too long beside the other results of this turn"
_NOWHERE: Final = Kept(outcome=Outcome.TRUNCATED, reason=NO_CLIENT)
_MOST_TOOLS: Final = 1000


class _Verdict(NamedTuple):
    """Why an output spills, and how many bytes may replace it. Without a reason, `why`, it stays."""

    why: str = ""
    room: int = UNLIMITED
    previews: Previews | None = None


class Pipeline:
    """The pipeline of one guard, which all its outputs take. `session` is that of calls that name none."""

    def __init__(self, policy: Policy, storage: Storage, session: str, trial: Trial | None = None) -> None:
        self.policy = policy
        self.storage = storage
        self.trial = trial
        self.intake: Intake = Intake(policy, session, trial)
        self.tally: Tally = Tally()
        self.reports: ReportJob = ReportJob(storage, self.tally, None if trial is None else trial.counts)
        self.tally.on_outputs = self.reports.start
        self._duplicates = Duplicates()
        self._decisions = Decisions()
        self._bursts = Bursts()
        self._fast_paths: dict[str, FastPath] = {}
        self.owner: object = None
        """The guard. It is pickled with a wrapped tool that is sent to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("_pipeline"), (self.owner,)

    def fast_path(self, tool: str) -> FastPath:
        """Return the short cut for the outputs of a tool."""
        if tool in self._fast_paths:
            return self._fast_paths[tool]
        limits = (self.policy.short_limits(tool),) if self.trial is None else self.trial.short_limits(tool)
        path = FastPath(limits, self.tally.inline(tool), (self, tool))
        path.is_followed = self.trial is not None
        if len(self._fast_paths) < _MOST_TOOLS:
            self._fast_paths[tool] = path
        return path

    def quick(
        self, result: Any, tool: str, session: str | None, matches_dropped: int | None
    ) -> Guarded | None:
        """Return a short text at once, in microseconds; None for any other output. Nearly all are short."""
        if type(tool) is not str:
            return None
        path = self._fast_paths.get(tool) or self.fast_path(tool)
        size = path.inline_size(result, session)
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
        """Return the output as it may go into the conversation. Raises nothing but `CancelledError`."""
        above: Oversized | None = None
        try:
            content, flow = examine(output.result), self.flow(output)
            above = await _oversized(executor, flow, output, content)
            verdict = _Verdict() if content is None else await self._verdict(executor, flow, output, content)
            if content is None or not verdict.why:
                guarded = inline(output, await _measured(executor, flow, content))
                if output.policy.masks_inline and not call_context.is_bypassed():
                    guarded = await executor.run(flow, masked_inline, guarded, output.policy)
            else:
                guarded = await self._spilled(executor, flow, output, content, verdict)
        except Exception as error:  # noqa: BLE001  (the boundary: the guard never breaks its agent)
            guarded = unmeasured(output, error)
        self.count(output, guarded, above)
        return guarded

    async def replaced(self, executor: Executor, output: Output, content: StreamShape) -> Guarded:
        """Return a notice for a stream that is too long, or the whole stream if a notice saves too little."""
        above: Oversized | None = None
        try:
            flow = self.flow(output)
            above = await _oversized(executor, flow, output, content)
            if await self._is_worth_it(executor, flow, output, content):
                guarded = await self._spilled(executor, flow, output, content, _Verdict(notice.TOO_LONG))
            else:
                guarded = inline(as_read(output, content), size_of(content))
        except Exception as error:  # noqa: BLE001  (as above)
            guarded = lost(output, content, error)
        self.count(output, guarded, above)
        return guarded

    def flow(self, output: Output) -> Hashable:
        """Return whose place in the queue an output takes: each session of each guard has its own."""
        return id(self), output.session

    def count(self, output: Output, guarded: Guarded, above: Oversized | None = None) -> None:
        """Count one output by what the guard made of it. `above`: it is oversized in an experiment."""
        tool, is_inline = output.tool, guarded.outcome is Outcome.INLINE
        self.tally.add(
            tool,
            guarded.outcome,
            guarded.bytes_before,
            guarded.bytes_after,
            is_left_whole=is_inline and guarded.reason is not None,
            is_identical=guarded.same_as is not None,
            tokens_kept_out=guarded.tokens_kept_out,
        )
        self.reports.start()
        self._follow(tool, self.intake.session_of(output.session))
        if self.trial is not None and output.assignment is not None:
            self.trial.count(output.assignment, self.intake.origin(output).call_id, tool, guarded, above)
        if not is_inline:
            self._bursts.noticed(self.intake.session_of(output.session), tool)
            self.fast_path(tool).is_followed = True
            self.reports.hurry()

    def follow_short(self, tool: str, session: str | None, size: int) -> None:
        """Count a burst if this output of the tool completes one, and count the output in its cohort."""
        named = self.intake.session_of(session)
        self._follow(tool, named)
        if self.trial is not None:
            self.trial.count_short(named, tool, size)

    def _follow(self, tool: str, session: str) -> None:
        if self._bursts.called(session, tool):
            self.tally.add_burst(tool)

    async def _verdict(self, executor: Executor, flow: Hashable, output: Output, content: Shape) -> _Verdict:
        """Decide on an output. The other results of its turn may make it spill, or leave it less room."""
        if call_context.is_bypassed():
            return _Verdict()
        limits, is_exempt = output.policy.limits(output.tool), False
        if output.tool in output.policy.exempt:
            is_exempt = await executor.run(flow, exemption.is_exempt, output.policy, output.tool, content)
        is_long = not is_exempt and await executor.is_too_long(flow, content, limits)
        previews = Previews() if is_long else None
        if is_long:
            is_long = await self._is_worth_it(executor, flow, output, content, previews)
        if output.call is None:
            return _Verdict(notice.TOO_LONG if is_long else "", previews=previews)
        pending = await executor.run(flow, pending_result, output, content, is_long, is_exempt)
        room = await executor.decide(output.call, pending)
        if room is not None:
            return _Verdict(notice.TOO_LONG if pending.exceeds else TOO_MUCH_TOGETHER, room, previews)
        return _Verdict(notice.TOO_LONG if is_long else "", pending.size, previews)

    async def _is_worth_it(
        self,
        executor: Executor,
        flow: Hashable,
        output: Output,
        content: Shape,
        previews: Previews | None = None,
    ) -> bool:
        """Return whether a notice is enough shorter than the output."""
        if surely_saves_enough(content, output.policy):
            return True
        check = partial(saves_enough, is_kept=self.storage.can_keep, previews=previews)
        return await executor.run(flow, check, content, output.policy, Origin(output.tool, "", ""))

    async def _spilled(
        self, executor: Executor, flow: Hashable, output: Output, content: Shape, verdict: _Verdict
    ) -> Guarded:
        """Store the output and make its notice. The loop thread does so once the output has a slot."""
        if output.assignment is not None:
            output = output._replace(policy=output.assignment.spilling)
        with spilling(self.intake.origin(output), can_keep=self.storage.can_keep) as (origin, settled):
            prepare = partial(self._prepared, output, content, verdict, origin)
            if not self.storage.can_keep:
                return settled(await executor.run(flow, self._unstored, output, prepare))
            why, chars = "", await _body_length(executor, flow, content)
            for _ in range(2):  # a loop thread that has just ended leaves room for another
                try:
                    stored = self.storage.loop.begin(self._stored(flow, output, chars, prepare))
                    return settled(await executor.result(stored))
                except NoLoop as error:
                    why = str(error)
            return settled(await executor.run(flow, self._stored_here, output, prepare, why))

    async def _stored(
        self, flow: Hashable, output: Output, size: int, prepare: Callable[[], Spill | Guarded]
    ) -> Guarded:
        """Wait for a slot, then prepare, store and settle. Runs in the loop thread."""
        async with self.storage.slot(flow, size) as slot:
            spill = await threads.run_fairly(flow, size, prepare)
            if isinstance(spill, Guarded):
                return spill
            kept = await self.storage.put(spill.request, slot)
            return await threads.run_fairly(flow, size, self._settled, output, spill, kept)

    def _stored_here(self, output: Output, prepare: Callable[[], Spill | Guarded], why: str) -> Guarded:
        spill = prepare()
        if isinstance(spill, Guarded):
            return spill
        return self._settled(output, spill, self.storage.keep_here(spill.request, why))

    def _unstored(self, output: Output, prepare: Callable[[], Spill | Guarded]) -> Guarded:
        spill = prepare()
        return spill if isinstance(spill, Guarded) else self._settled(output, spill, _NOWHERE)

    def _prepared(self, output: Output, content: Shape, verdict: _Verdict, origin: Origin) -> Spill | Guarded:
        """Encode and hash the output. Return it as it is if nothing can stand in its place."""
        spill = Spill.of(
            content,
            output.policy if output.call is None else output.policy.with_short_notices(),
            origin,
            why=verdict.why,
            room=verdict.room,
            identify=self.storage.can_keep,
            previews=verdict.previews,
        )
        problem = why_unchangeable(spill)
        return spill if problem is None else left_whole(output, content, problem)

    def _settled(self, output: Output, spill: Spill, kept: Kept) -> Guarded:
        try:
            return self._noticed(output, spill, kept)
        except MemoryError:  # what is stored must not be called lost
            return self._noticed(output, spill.with_small_preview(), kept)

    def _noticed(self, output: Output, spill: Spill, kept: Kept) -> Guarded:
        kept, earlier = self._decisions.first(spill.id, Decision(kept, self._earlier(spill, kept)))
        made = spill.notice(kept, earlier=earlier)
        value = spill.replaced(made)
        if spill.is_too_long(value):
            return inline(as_read(output, spill.content), size_of(spill.content))
        return Guarded(
            value=value,
            outcome=kept.outcome,
            bytes_before=max(spill.size, size_of(spill.content)),
            bytes_after=passed_bytes(spill.content) + text_bytes(value),
            capture=made.id or None,
            lines=spill.lines,
            reason=one_safe_line(kept.reason) if kept.reason else None,
            matches_dropped=output.matches_dropped,
            notice=made,
            same_as=None if earlier is None else earlier.id,
            masked=dict(sorted(spill.masked.items())) or None,
        )

    def _earlier(self, spill: Spill, kept: Kept) -> Earlier | None:
        """Return the earlier capture of the session with the same bytes, or None."""
        if kept.outcome is Outcome.TRUNCATED:
            return None
        session, content = spill.origin.session, spill.sha256
        earlier = self._duplicates.earlier(session, content, spill.id)
        if earlier is None or spill.id not in self._decisions:  # a later one counts once, however often shown
            self._duplicates.remember(session, content, spill.id, kept.expires)
        return earlier


async def _oversized(
    executor: Executor, flow: Hashable, output: Output, content: Shape | None
) -> Oversized | None:
    """Return whether an output of an experiment is above the usual limits."""
    assigned = output.assignment
    if assigned is None or content is None:
        return None
    return await executor.run(flow, oversized, content, assigned.limits)


async def _body_length(executor: Executor, flow: Hashable, content: Shape) -> int:
    """Return the length of the body. That of data has to be written first, as JSON."""
    if isinstance(content, (Envelope, ExceptionShape)):
        return await executor.run(flow, lambda: len(content.body))
    return len(content.body)


async def _measured(executor: Executor, flow: Hashable, content: Shape | None) -> int:
    if content is None:
        return 0
    return size_of(content) if is_quick(content) else await executor.run(flow, size_of, content)
