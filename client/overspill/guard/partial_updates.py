"""What a tool reports while it runs: cut to the tool's limits, and never stored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from overspill.guard import call_context
from overspill.previews.filling import Filling, shortened
from overspill.shapes.masked_copy import masked_copy
from overspill.shapes.partial import clamp_partial

if TYPE_CHECKING:
    from overspill.guard.policy import Policy


def clamp_update(update: Any, policy: Policy, tool: str) -> Any:
    """Return `update` in its shape, cut to the limits of `tool`, with secrets masked in what is cut."""
    if call_context.is_bypassed():
        return update
    limits, style = policy.limits(tool), policy.notice_style
    shorten = None
    if isinstance(style, Filling):
        shorten = partial(shortened, style, policy.cut_strategy(tool), limits)
    clamped, redactor = clamp_partial(update, limits, shorten), policy.redactor()
    if redactor is None or (clamped is update and not policy.masks_inline):
        return clamped
    return masked_copy(clamped, redactor).value
