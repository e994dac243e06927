"""What becomes of an output that spills: it is stored, and a notice takes its place.

An output that cannot be stored is cut, and its notice says so. The slow steps run in worker threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.delivery.storage import NO_CLIENT
from overspill.execution import threads, tracing
from overspill.execution.submissions import NoLoop
from overspill.guard import spill_span
from overspill.guard.decisions import Decision, Decisions
from overspill.guard.duplicates import Duplicates, Earlier
from overspill.guard.guarded import Guarded
from overspill.guard.results import (
    as_read,
    inline,
    left_whole,
    text_bytes,
    why_unchangeable,
)
from overspill.guard.spill import Spill
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.text.limits import UNLIMITED
from overspill.text.reasons import one_safe_line
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine, Hashable

    from overspill.delivery.slot_wait import Slot
    from overspill.delivery.storage import Storage
    from overspill.guard.executors import Executor
    from overspill.guard.output import Intake, Output
    from overspill.previews.remembered import Previews
    from overspill.shapes.shape import Shape
    from overspill.spools.store_request import Origin

_NOWHERE: Final = StoreResult(outcome=Outcome.TRUNCATED, reason=NO_CLIENT)


class Verdict(NamedTuple):
    """Why an output spills, and how many bytes may replace it. Without a reason, `why`, it stays."""

    why: str = ""
    room: int = UNLIMITED
    previews: Previews | None = None


class Spiller:
    """Stores the outputs of one guard that spill, and remembers what it decided on each."""

    def __init__(self, storage: Storage, intake: Intake) -> None:
        self.storage: Storage = storage
        self._intake = intake
        self._duplicates = Duplicates()
        self._decisions = Decisions()

    def spilled(
        self, executor: Executor, flow: Hashable, output: Output, shape: Shape, verdict: Verdict
    ) -> Coroutine[Any, Any, Guarded]:
        """Store the output and make its notice. The loop thread does so once the output has a slot."""
        if output.assignment is not None:
            output = output._replace(policy=output.assignment.spilling)
        spilling = _Spilling(self, output, shape, verdict, self._intake.origin(output), flow)
        return self._traced(executor, spilling) if tracing.is_on() else self._spilled(executor, spilling)

    async def _traced(self, executor: Executor, spilling: _Spilling) -> Guarded:
        with spill_span.spilling(spilling.origin, can_keep=self.storage.can_keep) as (origin, settled):
            spilling.origin = origin
            return settled(await self._spilled(executor, spilling))

    async def _spilled(self, executor: Executor, spilling: _Spilling) -> Guarded:
        flow, live = spilling.flow, spilling.output.live
        if not self.storage.can_keep:
            return await executor.run(flow, spilling.unstored)
        why, size = "", await _body_length(executor, flow, spilling.shape)
        spilling.size = size if live is None else max(0, size - live.accepted)
        for _ in range(2):  # a loop thread that has just ended leaves room for another
            try:
                return await executor.result(self.storage.begin(flow, spilling.size, spilling))
            except NoLoop as error:
                why = str(error)
        return await executor.run(flow, spilling.stored_here, why)

    def with_seen_lines(self, spill: Spill) -> Spill:
        """Return the spill with the lines that the model sees. Of a known output it may get no preview."""
        if self._duplicates.earlier(spill.origin.session, spill.sha256, spill.id) is not None:
            return spill
        try:
            return spill.with_seen_lines()
        except MemoryError:  # storing it matters more
            return spill

    def settled(self, output: Output, spill: Spill, stored: StoreResult) -> Guarded:
        """Return what the guard makes of an output, given what became of it."""
        try:
            return self._noticed(output, spill, stored)
        except MemoryError:  # what is stored must not be called lost
            return self._noticed(output, spill.with_small_preview(), stored)

    def _noticed(self, output: Output, spill: Spill, stored: StoreResult) -> Guarded:
        stored, earlier = self._decisions.first(spill.id, Decision(stored, self._earlier(spill, stored)))
        made = spill.notice(stored, earlier=earlier)
        value = spill.replaced(made)
        if spill.is_too_long(value):
            return inline(as_read(output, spill.shape), spill.shape.size)
        return Guarded(
            value=value,
            outcome=stored.outcome,
            bytes_before=max(spill.size, spill.shape.size),
            bytes_after=spill.shape.passed + text_bytes(value),
            capture=made.id or None,
            lines=spill.lines,
            reason=one_safe_line(stored.reason) if stored.reason else None,
            matches_dropped=output.matches_dropped,
            notice=made,
            same_as=None if earlier is None else earlier.id,
            masked=dict(sorted(spill.masked.items())) or None,
        )

    def _earlier(self, spill: Spill, stored: StoreResult) -> Earlier | None:
        """Return the earlier capture of the session with the same bytes, or None."""
        if stored.outcome is Outcome.TRUNCATED:
            return None
        session, sha256 = spill.origin.session, spill.sha256
        earlier = self._duplicates.earlier(session, sha256, spill.id)
        if earlier is None or spill.id not in self._decisions:  # a later one counts once, however often shown
            self._duplicates.remember(session, sha256, spill.id, stored.expires)
        return earlier


class _Spilling:
    """One output that is being stored, of the session `flow`. `size` says how much it asks for a slot."""

    __slots__ = ("flow", "origin", "output", "shape", "size", "spiller", "verdict")

    def __init__(
        self, spiller: Spiller, output: Output, shape: Shape, verdict: Verdict, origin: Origin, flow: Hashable
    ) -> None:
        self.spiller, self.output, self.shape, self.verdict = spiller, output, shape, verdict
        self.origin: Origin = origin
        self.flow, self.size = flow, 0

    async def __call__(self, slot: Slot) -> Guarded:
        """Prepare, store and settle the output, in the loop thread."""
        spill = await threads.run_fairly(self.flow, self.size, self._prepared)
        if isinstance(spill, Guarded):
            return spill
        stored = await self.spiller.storage.put(spill.request, slot)
        return await threads.run_fairly(
            self.flow, self.size, self.spiller.settled, self.output, spill, stored
        )

    def stored_here(self, why: str) -> Guarded:
        """Keep the output in the spool, in the caller's thread. `why` says why no other thread does it."""
        spill = self._prepared()
        if isinstance(spill, Guarded):
            return spill
        stored = self.spiller.storage.keep_here(spill.request, why)
        return self.spiller.settled(self.output, spill, stored)

    def unstored(self) -> Guarded:
        """Cut the output: there is nowhere to store it."""
        spill = self._prepared()
        return spill if isinstance(spill, Guarded) else self.spiller.settled(self.output, spill, _NOWHERE)

    def _prepared(self) -> Spill | Guarded:
        """Encode and hash the output. Return it as it is if nothing can stand in its place."""
        output, shape, verdict = self.output, self.shape, self.verdict
        policy = output.policy
        spill = Spill.of(
            shape,
            policy if output.call is None else policy.with_previews(policy.preview_bytes),
            self.origin,
            why=verdict.why,
            room=verdict.room,
            identify=self.spiller.storage.can_keep,
            previews=verdict.previews,
        )
        problem = why_unchangeable(spill)
        return self.spiller.with_seen_lines(spill) if problem is None else left_whole(output, shape, problem)


async def _body_length(executor: Executor, flow: Hashable, shape: Shape) -> int:
    """Return the length of the body. That of data has to be written first, as JSON."""
    if isinstance(shape, (Envelope, ExceptionShape)):
        return await executor.run(flow, lambda: len(shape.body))
    return len(shape.body)
