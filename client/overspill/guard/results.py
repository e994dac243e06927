"""The guard's results for an output: the output as it is, a shortened one, or a notice that it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill.delivery.reasons import reason
from overspill.guard.guarded import Guarded
from overspill.previews import notice
from overspill.previews.notice_facts import Facts
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.masked_copy import masked_copy
from overspill.shapes.sender import Sender
from overspill.shapes.stream_shapes import StreamShape
from overspill.text.measure import extent_of
from overspill.text.reasons import one_safe_line
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.output import Output
    from overspill.guard.policy import Policy
    from overspill.guard.spill import Spill
    from overspill.shapes.shape import Shape

_SAMPLE: Final = notice.truncated(Facts(id="", tool="", size=0, lines=0, preview="", reader=""), "a sample")
"""A notice for trying whether one can be put into an output."""

_MAX_SHOWN: Final = 0.67
"""The share of an output above its limits that its copy may still show beside a notice."""


def as_read(output: Output, shape: Shape) -> Output:
    """Return the output as it may stay. A stream was read already: return all that came."""
    return output._replace(result=shape.whole()) if isinstance(shape, StreamShape) else output


def inline(output: Output, size: int) -> Guarded:
    """Return an output of `size` bytes that stays in the conversation."""
    return Guarded(
        value=output.result,
        outcome=Outcome.INLINE,
        bytes_before=size,
        bytes_after=size,
        matches_dropped=output.matches_dropped,
    )


def masked_inline(guarded: Guarded, policy: Policy) -> Guarded:
    """Return an output that stays in the conversation with its secrets masked."""
    redactor = policy.redactor()
    if redactor is None:
        return guarded
    value, counts = masked_copy(guarded.value, redactor)
    return replace(guarded, value=value, masked=dict(sorted(counts.items()))) if counts else guarded


def left_whole(output: Output, shape: Shape, problem: Unchangeable) -> Guarded:
    """Return an output that passes as it is, because no shorter copy of its class can be made."""
    guarded = inline(output, shape.size)
    return replace(guarded, reason=one_safe_line(f"no shorter copy of it can be made: {problem}"))


def unmeasured(output: Output, error: Exception) -> Guarded:
    """Return an output that passes as it is, because it could not be measured."""
    problem = one_safe_line(f"the output could not be measured: {reason(error)}")
    return replace(inline(output, 0), reason=problem)


def lost(output: Output, shape: Shape, error: Exception) -> Guarded:
    """Return a notice without a preview, for an output that is gone."""
    extent, reader = extent_of(shape.body), output.policy.reader
    facts = Facts(id="", tool=output.tool, size=extent.size, lines=extent.lines, preview="", reader=reader)
    made = notice.truncated(facts, reason(error))
    value = shape.replaced(made)
    return Guarded(
        value=value,
        outcome=made.outcome,
        bytes_before=extent.size,
        bytes_after=shape.passed + text_bytes(value, shape.sender),
        lines=extent.lines,
        reason=one_safe_line(reason(error)),
        matches_dropped=output.matches_dropped,
        notice=made,
    )


def text_bytes(value: Any, sender: Sender = Sender.TOOL) -> int:
    """Return the bytes of all text in `value`, 0 if it has none; `sender` as in `examine`."""
    shape = examine(value, sender=sender)
    return 0 if shape is None else shape.size


def why_unchangeable(spill: Spill) -> Unchangeable | None:
    """Return why nothing can replace an output, or None. Ask before anything is stored."""
    try:
        value = spill.shape.replaced(_SAMPLE)
    except Unchangeable as problem:
        return problem
    return Unchangeable(type(value).__name__) if _shows_it_still(value, spill) else None


def _shows_it_still(value: Any, spill: Spill) -> bool:
    """Return whether a copy is still too long: a class may show text that is in none of its fields."""
    if spill.is_small or not isinstance(spill.shape, Envelope):
        return False
    size = text_bytes(value, spill.shape.sender)
    return size > max(spill.policy.limits(spill.origin.tool).max_bytes, spill.shape.size * _MAX_SHOWN)
