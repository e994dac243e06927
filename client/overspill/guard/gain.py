"""The room that a notice takes, and whether the notice saves enough of the output to be worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.envelope import Envelope
from overspill.shapes.examination import examine
from overspill.text.limits import least_token_limit
from overspill.text.measure import extent_of
from overspill.text.media_types import JSON_TYPE

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.shapes.shape import Shape
    from overspill.text.body import Body
    from overspill.text.limits import Limits

NOTICE_BYTES: Final = 1_536
"""The most bytes that a notice in the guard's own words has around its preview."""
DATA_BYTES: Final = 512
"""The bytes that a notice in JSON data takes beside that: names, quotes, the first items of a list."""
_FILLING_RESERVE_BYTES: Final = 900
"""Bytes kept free for the words of a style that fills the limits."""
_SMALL_CHARS: Final = 32 * 1024
"""If an output has more characters, any notice is much shorter, unless the policy's previews are long."""


def notice_overhead(shape: Shape) -> int:
    """Return the most bytes that a notice for the output has around its preview."""
    return NOTICE_BYTES + (DATA_BYTES if shape.content_type == JSON_TYPE else 0)


def escape_factor(shape: Shape) -> int:
    """Return how many bytes one byte of a preview becomes at most: JSON escapes quotes and newlines."""
    return 2 if shape.content_type == JSON_TYPE else 1


def within_room(limits: Limits, room: int) -> Limits:
    """Return the limits with at most `room` bytes."""
    return limits._replace(max_bytes=min(limits.max_bytes, room))


def cut_to_fit(shape: Shape, policy: Policy, tool: str, room: int) -> Shape:
    """Cut a result of several parts no more than its limits and `room` ask for."""
    if not isinstance(shape, Envelope):
        return shape
    fills = policy.notice_style.fills
    reserve = _FILLING_RESERVE_BYTES if fills else policy.preview_bytes + notice_overhead(shape)
    return shape.within(within_room(policy.limits(tool), room), reserve, fills=fills)


def is_small(output: Shape, policy: Policy) -> bool:
    """Return whether a notice might be no shorter than `output`."""
    return len(output.visible_text) <= small_chars(policy)


def small_chars(policy: Policy) -> int:
    """Return the characters of an output up to which a notice might be no shorter."""
    return max(_SMALL_CHARS, 4 * max(policy.preview_bytes, policy.lost_preview))


def is_gain(output: Shape, value: Any, limits: Limits, least_gain: float) -> bool:
    """Return whether `value`, which stands for `output`, is shorter by `least_gain` (0 to 1).

    Bytes always count. Lines and tokens count if the output exceeds the `limits` in them.
    """
    found = examine(value, sender=output.sender)
    if found is None:
        return True
    if found.size > int(output.size * (1 - least_gain)):
        return False
    old, new = output.measured_text, found.measured_text
    return _has_no_more_lines(old, new, limits) and _has_fewer_tokens(old, new, limits, least_gain)


def _has_no_more_lines(old: Body, new: Body, limits: Limits) -> bool:
    lines = extent_of(old).lines
    return lines <= limits.max_lines or extent_of(new).lines <= lines


def _has_fewer_tokens(old: Body, new: Body, limits: Limits, least_gain: float) -> bool:
    if limits.max_tokens is None or not (isinstance(old, str) and isinstance(new, str)):
        return True
    tokens = least_token_limit(old, limits.counter)
    return tokens <= limits.max_tokens or least_token_limit(new, limits.counter) <= int(
        tokens * (1 - least_gain)
    )
