"""Takes an output out of the conversation: it is stored, and a notice takes its place.

An output that cannot be stored is cut, and its notice says so. The slow steps run in worker threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.delivery.storage import NO_CLIENT
from overspill.execution import threads
from overspill.execution.submissions import NoLoop
from overspill.guard.guarded import Guarded
from overspill.guard.results import as_read, inline, left_whole, text_bytes, why_unchangeable
from overspill.guard.spill import Spill
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import is_too_long
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.single_values import TextShape
from overspill.text.limits import UNLIMITED
from overspill.text.reasons import one_safe_line
from overspill.text.rendering import printable
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.delivery.storage import Storage
    from overspill.delivery.upload import Failure
    from overspill.guard.decisions import Decisions
    from overspill.guard.output import Output
    from overspill.shapes.shape import Shape
    from overspill.spools.store_request import Origin

_NOWHERE: Final = StoreResult(outcome=Outcome.TRUNCATED, reason=NO_CLIENT)


class Verdict(NamedTuple):
    """The reason why an output spills, and the number of bytes that may replace it."""

    why: str
    room: int = UNLIMITED


class Spiller:
    """Takes one output out of the conversation, for `origin`. `decisions` are those of its guard."""

    __slots__ = ("_decisions", "_output", "_shape", "_size", "_verdict", "origin", "storage")

    def __init__(
        self,
        storage: Storage,
        decisions: Decisions,
        output: Output,
        shape: Shape,
        verdict: Verdict,
        origin: Origin,
    ) -> None:
        self.storage: Storage = storage
        self.origin: Origin = origin
        self._decisions, self._output, self._shape, self._verdict = decisions, output, shape, verdict
        self._size = 0
        """The bytes of the slot that it needs."""

    async def spilled(self) -> Guarded:
        """Store the output and make its notice. The loop thread does so once the output has a slot."""
        output = self._output
        if not self.storage.can_keep:
            return await output.run(self._unstored)
        is_written = isinstance(self._shape, (Envelope, ExceptionShape))  # as JSON, to find its length
        why, size = "", await output.run(lambda: len(self._shape.body), is_quick=not is_written)
        self._size = size if output.live is None else max(0, size - output.live.accepted)
        for _ in range(2):  # a loop thread that has just ended leaves room for another
            try:
                return await output.executor.result(self.storage.begin(output.flow, self._size, self._stored))
            except NoLoop as error:
                why = str(error)
        return await output.run(self._stored_here, why)

    async def _stored(self, before: Failure | None) -> Guarded:
        """Store the output, in the loop thread. `before` says why it has no slot of the service, if so."""
        output, size = self._output, self._size
        spill = await threads.run_fairly(output.flow, size, self._prepared)
        if isinstance(spill, Guarded):
            return spill
        stored = await self.storage.put(spill.request, before)
        return await threads.run_fairly(output.flow, size, self._noticed, spill, stored)

    def _stored_here(self, reason: str) -> Guarded:
        """Keep the output in the spool, in the caller's thread. `reason` says why no other thread does it."""
        spill = self._prepared()
        if isinstance(spill, Guarded):
            return spill
        return self._noticed(spill, self.storage.keep_here(spill.request, reason))

    def _unstored(self) -> Guarded:
        """Cut the output: there is nowhere to store it."""
        spill = self._prepared()
        return spill if isinstance(spill, Guarded) else self._noticed(spill, _NOWHERE)

    def _prepared(self) -> Spill | Guarded:
        """Encode and hash the output. Return it unchanged if nothing can replace it."""
        spill = self._spill(self._shape)
        problem = why_unchangeable(spill)
        if problem is not None:
            text = self._printed()
            if text is None:
                return left_whole(self._output, self._shape, problem)
            spill = self._spill(text)
        if self._decisions.earlier(spill.origin.session, spill.sha256, spill.id) is not None:
            return spill  # it may get no preview
        try:
            return spill.with_seen_lines()
        except MemoryError:  # storing it matters more
            return spill

    def _spill(self, shape: Shape) -> Spill:
        policy, verdict = self._output.policy, self._verdict
        return Spill.of(
            shape,
            policy if self._output.call is None else policy.with_previews(policy.preview_bytes),
            self.origin,
            why=verdict.why,
            room=verdict.room,
            identify=self.storage.can_keep,
            previews=self._output.previews,
        )

    def _printed(self) -> Shape | None:
        """Return the printed text of the output if that is what the model sees and it is too long."""
        output = self._output
        if not output.is_printed:
            return None
        text = TextShape(printable(output.result))
        return text if is_too_long(text, output.policy.limits(output.tool)) else None

    def _noticed(self, spill: Spill, stored: StoreResult) -> Guarded:
        """Return the guard's result for the output, given its fate."""
        try:
            return self._replaced(spill, stored)
        except MemoryError:  # what is stored must not be called lost
            return self._replaced(spill.with_small_preview(), stored)

    def _replaced(self, spill: Spill, stored: StoreResult) -> Guarded:
        stored, earlier = self._decisions.decided(spill.origin.session, spill.sha256, spill.id, stored)
        made = spill.notice(stored, earlier=earlier)
        value = spill.replaced(made)
        if spill.is_too_long(value):
            return inline(as_read(self._output, spill.shape), spill.shape.size)
        return Guarded(
            value=value,
            outcome=stored.outcome,
            bytes_before=max(spill.size, spill.shape.size),
            bytes_after=spill.shape.passed + text_bytes(value, spill.shape.sender),
            capture=made.id or None,
            lines=spill.lines,
            reason=one_safe_line(stored.reason) if stored.reason else None,
            matches_dropped=self._output.matches_dropped,
            notice=made,
            same_as=None if earlier is None else earlier.id,
            masked=dict(sorted(spill.masked.items())) or None,
        )
