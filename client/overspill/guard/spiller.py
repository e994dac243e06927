"""What becomes of an output that spills: it is stored, and a notice takes its place.

An output that cannot be stored is cut, and its notice says so. The slow steps run in worker threads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.delivery.storage import NO_CLIENT
from overspill.execution import threads
from overspill.execution.loop_thread import NoLoop
from overspill.guard.decisions import Decision, Decisions
from overspill.guard.duplicates import Duplicates, Earlier
from overspill.guard.guarded import Guarded
from overspill.guard.results import (
    as_read,
    inline,
    left_whole,
    passed_bytes,
    text_bytes,
    why_unchangeable,
)
from overspill.guard.spill import Spill
from overspill.guard.spill_span import spilling
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.shape import size_of
from overspill.text.limits import UNLIMITED
from overspill.text.reasons import one_safe_line
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from overspill.delivery.storage import Storage
    from overspill.guard.executors import Executor
    from overspill.guard.intake import Intake
    from overspill.guard.output import Output
    from overspill.previews.case import Previews
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
        self._storage, self._intake = storage, intake
        self._duplicates = Duplicates()
        self._decisions = Decisions()

    async def spilled(
        self, executor: Executor, flow: Hashable, output: Output, shape: Shape, verdict: Verdict
    ) -> Guarded:
        """Store the output and make its notice. The loop thread does so once the output has a slot."""
        if output.assignment is not None:
            output = output._replace(policy=output.assignment.spilling)
        with spilling(self._intake.origin(output), can_keep=self._storage.can_keep) as (origin, settled):
            prepare = partial(self._prepared, output, shape, verdict, origin)
            if not self._storage.can_keep:
                return settled(await executor.run(flow, self._unstored, output, prepare))
            why, chars = "", await _body_length(executor, flow, shape)
            if output.live is not None:
                chars = output.live.left(chars)
            for _ in range(2):  # a loop thread that has just ended leaves room for another
                try:
                    stored = self._storage.loop.begin(self._stored(flow, output, chars, prepare))
                    return settled(await executor.result(stored))
                except NoLoop as error:
                    why = str(error)
            return settled(await executor.run(flow, self._stored_here, output, prepare, why))

    async def _stored(
        self, flow: Hashable, output: Output, size: int, prepare: Callable[[], Spill | Guarded]
    ) -> Guarded:
        """Wait for a slot, then prepare, store and settle. Runs in the loop thread."""
        slot = await self._storage.slot(flow, size)
        try:
            spill = await threads.run_fairly(flow, size, prepare)
            if isinstance(spill, Guarded):
                return spill
            stored = await self._storage.put(spill.request, slot)
            return await threads.run_fairly(flow, size, self._settled, output, spill, stored)
        finally:
            slot.release()

    def _stored_here(self, output: Output, prepare: Callable[[], Spill | Guarded], why: str) -> Guarded:
        spill = prepare()
        if isinstance(spill, Guarded):
            return spill
        return self._settled(output, spill, self._storage.keep_here(spill.request, why))

    def _unstored(self, output: Output, prepare: Callable[[], Spill | Guarded]) -> Guarded:
        spill = prepare()
        return spill if isinstance(spill, Guarded) else self._settled(output, spill, _NOWHERE)

    def _prepared(self, output: Output, shape: Shape, verdict: Verdict, origin: Origin) -> Spill | Guarded:
        """Encode and hash the output. Return it as it is if nothing can stand in its place."""
        spill = Spill.of(
            shape,
            output.policy if output.call is None else output.policy.with_short_notices(),
            origin,
            why=verdict.why,
            room=verdict.room,
            identify=self._storage.can_keep,
            previews=verdict.previews,
        )
        problem = why_unchangeable(spill)
        return self._with_seen_lines(spill) if problem is None else left_whole(output, shape, problem)

    def _with_seen_lines(self, spill: Spill) -> Spill:
        """Return the spill with the lines that the model sees. Of a known output it may get no preview."""
        if self._duplicates.earlier(spill.origin.session, spill.sha256, spill.id) is not None:
            return spill
        try:
            return spill.with_seen_lines()
        except MemoryError:  # storing it matters more
            return spill

    def _settled(self, output: Output, spill: Spill, stored: StoreResult) -> Guarded:
        try:
            return self._noticed(output, spill, stored)
        except MemoryError:  # what is stored must not be called lost
            return self._noticed(output, spill.with_small_preview(), stored)

    def _noticed(self, output: Output, spill: Spill, stored: StoreResult) -> Guarded:
        stored, earlier = self._decisions.first(spill.id, Decision(stored, self._earlier(spill, stored)))
        made = spill.notice(stored, earlier=earlier)
        value = spill.replaced(made)
        if spill.is_too_long(value):
            return inline(as_read(output, spill.shape), size_of(spill.shape))
        return Guarded(
            value=value,
            outcome=stored.outcome,
            bytes_before=max(spill.size, size_of(spill.shape)),
            bytes_after=passed_bytes(spill.shape) + text_bytes(value),
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


async def _body_length(executor: Executor, flow: Hashable, shape: Shape) -> int:
    """Return the length of the body. That of data has to be written first, as JSON."""
    if isinstance(shape, (Envelope, ExceptionShape)):
        return await executor.run(flow, lambda: len(shape.body))
    return len(shape.body)
