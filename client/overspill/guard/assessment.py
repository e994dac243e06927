"""Decides whether an output spills: it does if it is too long and a notice is enough shorter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.guard import gain
from overspill.guard.exemption import is_exempt
from overspill.guard.gain import DATA_BYTES, NOTICE_BYTES, escape_factor, notice_overhead
from overspill.guard.output import name_text
from overspill.guard.spill import Spill
from overspill.guard.turn import PendingResult
from overspill.previews.notice_facts import StoreResult
from overspill.previews.styles import Marked
from overspill.redaction.masking import Redaction
from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine, is_too_long, size_beside_notices, sole_text
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.records import Reserve
from overspill.spools.store_request import Origin
from overspill.text import measure
from overspill.text.limits import allowed_bytes
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.output import Output
    from overspill.guard.policy import Policy
    from overspill.previews.remembered import Previews
    from overspill.shapes.shape import Shape
    from overspill.text.limits import Limits

_SAMPLE_ID: Final = wire.capture_id("", "", b"")
_SAMPLE_STORED: Final = StoreResult(outcome=Outcome.CAPTURED, expires=datetime(2000, 1, 1, tzinfo=UTC))
_SAMPLE_LOST: Final = StoreResult(outcome=Outcome.TRUNCATED, reason="no Overspill service is configured")
"""Samples for building a notice when only its length matters."""
_NOTICE_LINES: Final = 8
"""The most lines that a notice in the guard's own words has around its preview."""


def assess(result: Any, tool: str, policy: Policy) -> Shape | None:
    """Examine an output. Return its shape if it has to spill, or None if it stays inline."""
    found = examine(result)
    if found is None or not is_too_long(found, policy.limits(tool)):
        return None
    if is_exempt(policy, tool, found):
        return None
    return found if saves_enough(found, policy, tool) else None


def saves_enough(
    found: Shape, policy: Policy, tool: str, *, is_kept: bool = True, previews: Previews | None = None
) -> bool:
    """Return whether a notice is enough shorter than an output. It always is for a large output.

    `is_kept`: there is a destination that can store it. For a small output this builds the notice, which
    takes milliseconds: call it in a thread.
    """
    if surely_saves_enough(found, policy):
        return True
    if _is_surely_shorter(found, policy, policy.limits(tool), is_kept=is_kept):
        return True
    sample = replace(policy, redaction=Redaction.OFF)  # only the length of the notice matters
    spill = Spill.of(found, sample, Origin(tool, "", ""), identify=False, previews=previews)
    if not spill.is_small:
        return True
    try:
        stored = _SAMPLE_STORED if is_kept else _SAMPLE_LOST
        return spill.gains_by(replace(spill, id=_SAMPLE_ID).notice(stored, counts_tokens=False))
    except Unchangeable:  # the guard says that nothing can stand for it
        return True


def surely_saves_enough(found: Shape, policy: Policy) -> bool:
    """Return whether `saves_enough` is known at once: for a large output, or if no gain is asked for."""
    if policy.least_gain is None or policy.notice_style.fills:
        return True
    return not isinstance(found, Envelope) and not gain.is_small(found, policy)


def _is_surely_shorter(found: Shape, policy: Policy, limits: Limits, *, is_kept: bool) -> bool:
    """Return whether any notice is short enough, so that none has to be built to find out.

    This holds for a single text under the guard's own style: its notice has a known maximum.
    """
    text = sole_text(found)
    if text is None or policy.least_gain is None or not isinstance(policy.notice_style, Marked):
        return False
    if limits.max_tokens is not None or _NOTICE_LINES + policy.preview_lines > limits.max_lines:
        return False
    shown = max(policy.preview_bytes, *(band.preview_bytes or 0 for band in policy.bands))
    shown = shown if is_kept else max(shown, policy.lost_preview)
    limit = NOTICE_BYTES + measure.size(policy.reader) + shown
    return limit <= len(text) * (1 - policy.least_gain)


def reserve(policy: Policy) -> Reserve:
    """Return what a stream of records holds back for a notice, and the size from which one is worth it."""
    notice_bytes = NOTICE_BYTES + DATA_BYTES + policy.preview_bytes
    return Reserve(None if policy.notice_style.fills else notice_bytes, gain.small_chars(policy))


def pending_result(output: Output, shape: Shape, *, is_long: bool, is_exempt: bool) -> PendingResult:
    """Return the request of an output to its turn.

    If the style fills the limits, a long output asks for as much as they allow, and can do with less.
    """
    policy, call_id, size = output.policy, name_text(output.call_id), shape.size
    fills = is_long and policy.notice_style.fills
    if fills:
        size = min(size, allowed_bytes(policy.limits(output.tool), shape.body))
    shortest = notice_overhead(shape)
    limit = shortest + policy.preview_bytes * escape_factor(shape)
    if is_exempt or (shape.notices() and size_beside_notices(shape) <= limit):
        return PendingResult(size, None, is_long and not fills, call_id)
    return PendingResult(size, limit, is_long and not fills, call_id, shortest)
