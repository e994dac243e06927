"""Reports of a tool while it runs: they are cut to the tool's limits, and never stored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from overspill.guard import call_context
from overspill.previews.case import Case
from overspill.previews.filling import Filling
from overspill.previews.notice_facts import Facts, StoreResult
from overspill.previews.remembered import Previews
from overspill.shapes.masked_copy import masked_copy
from overspill.shapes.partial import clamp_partial
from overspill.text.measure import extent_of
from overspill.text.media_types import TEXT_TYPE
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.previews.cut import Strategy
    from overspill.text.limits import Limits


def clamp_update(update: Any, policy: Policy, tool: str) -> Any:
    """Return `update` in its shape, cut to the limits of `tool`, with secrets masked in what is cut."""
    if call_context.is_bypassed():
        return update
    limits, style = policy.limits(tool), policy.notice_style
    shorten = None
    if isinstance(style, Filling):
        shorten = partial(_shortened, style, policy.cut_strategy(tool), limits)
    clamped, redactor = clamp_partial(update, limits, shorten), policy.redactor()
    if redactor is None or (clamped is update and not policy.masks_inline):
        return clamped
    return masked_copy(clamped, redactor).value


def _shortened(style: Filling, strategy: Strategy, limits: Limits, text: str, left: Limits) -> str:
    """Return `text` in what is `left` of `limits`, in the words of `style`, with no handle."""
    extent = extent_of(text)
    case = Case(
        facts=Facts(id="", tool="", size=extent.size, lines=extent.lines, preview="", reader=""),
        stored=StoreResult(outcome=Outcome.TRUNCATED),
        body=text,
        extent=extent,
        content_type=TEXT_TYPE,
        limits=limits,
        room=left._replace(max_bytes=min(left.max_bytes, extent.size)),
        shown=left,
        strategy=strategy,
        read=str,
        fits=lambda _: True,
        previews=Previews(),
    )
    return str(style.notice(case))
