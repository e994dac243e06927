"""The steps that one output takes through the guard: examine, decide, spill or leave it, count.

Nothing here raises an error of its own. An output that cannot be stored is cut, and its notice says so.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from overspill.execution import tracing
from overspill.execution.signals import is_of_handler
from overspill.guard import call_context, exemption, spill_span
from overspill.guard.assessment import pending_result, saves_enough, surely_saves_enough
from overspill.guard.bursts import Bursts
from overspill.guard.counts.report_job import ReportJob
from overspill.guard.counts.tally import Tally
from overspill.guard.decisions import Decisions
from overspill.guard.fast_path import FastPath
from overspill.guard.guarded import Guarded
from overspill.guard.output import Intake
from overspill.guard.results import (
    as_read,
    inline,
    lost,
    masked_inline,
    unmeasured,
)
from overspill.guard.spiller import Spiller, Verdict
from overspill.guard.trial import oversized
from overspill.previews.notice_facts import TOO_LONG
from overspill.shapes.examination import examine, is_too_long
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from overspill.delivery.storage import Storage
    from overspill.guard.output import Output
    from overspill.guard.policy import Policy
    from overspill.guard.trial import Trial
    from overspill.shapes.shape import Shape
    from overspill.shapes.stream_shapes import StreamShape
    from overspill.text.limits import Limits

TOO_MUCH_TOGETHER: Final = "too long beside the other results of this turn"
_MAX_TOOLS: Final = 1000
_SPILLS: Final = Verdict(TOO_LONG)


class Pipeline:
    """The pipeline of one guard, its `owner`, which all its outputs take.

    `session` is that of calls that name none. A wrapped tool that is sent to another process takes the owner
    along.
    """

    def __init__(
        self, policy: Policy, storage: Storage, session: str, owner: object, trial: Trial | None = None
    ) -> None:
        self.policy = policy
        self.storage = storage
        self.trial = trial
        self.intake: Intake = Intake(policy, session, trial)
        self.tally: Tally = Tally()
        self.reports: ReportJob = ReportJob(storage, self.tally, None if trial is None else trial.counts)
        self.tally.on_outputs = self.reports.start
        self._decisions = Decisions()
        self._bursts = Bursts()
        self._fast_paths: dict[str, FastPath] = {}
        self.owner = owner

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("_pipeline"), (self.owner,)

    def fast_path(self, tool: str) -> FastPath:
        """Return the short cut for the outputs of a tool."""
        if tool in self._fast_paths:
            return self._fast_paths[tool]
        policies = (self.policy,) if self.trial is None else self.trial.policies
        path = FastPath(policies, tool, self.tally.inline(tool), self)
        path.is_followed = self.trial is not None
        if len(self._fast_paths) < _MAX_TOOLS:
            self._fast_paths[tool] = path
        return path

    def quick(
        self, result: Any, tool: str, session: str | None, matches_dropped: int | None
    ) -> Guarded | None:
        """Return the guarded output at once if it is a short text; None for any other output.

        Takes microseconds. Nearly all outputs are short.
        """
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

    async def process(self, output: Output) -> Guarded:
        """Return the output as it may go into the conversation.

        Raises nothing but `CancelledError`, and what a signal handler of the program raises meanwhile.
        """
        above: bytes | None = None
        try:
            shape = examine(output.result, is_printed=output.is_printed, sender=output.sender)
            above = await _oversized(output, shape)
            verdict = None if shape is None else await self._verdict(output, shape)
            if shape is None or verdict is None:
                is_quick = shape is None or shape.is_quick()
                size = await output.run(lambda: shape.size if shape else 0, is_quick=is_quick)
                guarded = inline(output, size)
                if output.policy.masks_inline and not call_context.is_bypassed():
                    guarded = await output.run(masked_inline, guarded, output.policy)
            else:
                guarded = await self._spilled(output, shape, verdict)
        except Exception as error:  # the boundary: the guard never breaks its agent
            if is_of_handler(error):
                raise
            guarded = unmeasured(output, error)
        self.count(output, guarded, above)
        return guarded

    async def replaced(self, output: Output, shape: StreamShape) -> Guarded:
        """Return a notice for a stream that is too long, or the whole stream if a notice saves too little."""
        above: bytes | None = None
        try:
            above = await _oversized(output, shape)
            if await self._is_worth_it(output, shape):
                guarded = await self._spilled(output, shape, _SPILLS)
            else:
                guarded = inline(as_read(output, shape), shape.size)
        except Exception as error:  # as above
            if is_of_handler(error):
                raise
            guarded = lost(output, shape, error)
        self.count(output, guarded, above)
        return guarded

    def _spilled(self, output: Output, shape: Shape, verdict: Verdict) -> Coroutine[Any, Any, Guarded]:
        """Store the output and make its notice, in a span of its own if the process records spans."""
        if output.assignment is not None:
            output = output._replace(policy=output.assignment.spilling)
        origin = self.intake.origin(output)
        spiller = Spiller(self.storage, self._decisions, output, shape, verdict, origin)
        return spill_span.traced(spiller) if tracing.is_on() else spiller.spilled()

    def count(self, output: Output, guarded: Guarded, above: bytes | None = None) -> None:
        """Count one output by what the guard made of it. `above` is the result of `oversized` for it."""
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
            self._bursts.add_notice(self.intake.session_of(output.session), tool)
            self.fast_path(tool).is_followed = True
            self.reports.hurry()

    def follow_short(self, tool: str, session: str | None, size: int) -> None:
        """Count a burst if this output of the tool completes one, and count the output in its cohort."""
        named = self.intake.session_of(session)
        self._follow(tool, named)
        if self.trial is not None:
            self.trial.count_short(named, tool, size)

    def _follow(self, tool: str, session: str) -> None:
        if self._bursts.add_output(session, tool):
            self.tally.add_burst(tool)

    async def _verdict(self, output: Output, shape: Shape) -> Verdict | None:
        """Return why an output spills; None if it stays.

        That also depends on the other results of its turn.
        """
        if call_context.is_bypassed():
            return None
        limits, is_exempt = output.policy.limits(output.tool), False
        if output.tool in output.policy.exempt:
            is_exempt = await output.run(exemption.is_exempt, output.policy, output.tool, shape)
        is_long = not is_exempt and await _is_too_long(output, shape, limits)
        is_long = is_long and await self._is_worth_it(output, shape)
        if output.call is None:
            return _SPILLS if is_long else None
        pending = await output.run(
            partial(pending_result, output, shape, is_long=is_long, is_exempt=is_exempt)
        )
        room = await output.executor.decide(output.call, pending)
        if room is not None:
            return Verdict(TOO_LONG if pending.exceeds else TOO_MUCH_TOGETHER, room)
        return Verdict(TOO_LONG, pending.size) if is_long else None

    async def _is_worth_it(self, output: Output, shape: Shape) -> bool:
        """Return whether a notice is enough shorter than the output."""
        if surely_saves_enough(shape, output.policy):
            return True
        check = partial(saves_enough, is_kept=self.storage.can_keep, previews=output.previews)
        return await output.run(check, shape, output.policy, output.tool)


async def _oversized(output: Output, shape: Shape | None) -> bytes | None:
    """Return the digest of an output of an experiment that is above the usual limits, else None."""
    assigned = output.assignment
    if assigned is None or shape is None:
        return None
    return await output.run(oversized, shape, assigned.limits)


async def _is_too_long(output: Output, shape: Shape, limits: Limits) -> bool:
    counts_tokens = limits.max_tokens is not None and limits.counter is not None
    is_quick = shape.is_quick(limits) and not counts_tokens
    return await output.run(is_too_long, shape, limits, is_quick=is_quick)
