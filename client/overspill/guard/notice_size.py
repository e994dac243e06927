"""How many bytes a notice takes, and what room it leaves to the rest of an output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.shapes.envelope import Envelope
from overspill.text.rendering import JSON_TYPE

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.shapes.shape import Shape
    from overspill.text.limits import Limits

NOTICE_BYTES: Final = 1_536
"""The most bytes that a notice in the guard's own words has around its preview."""
DATA_BYTES: Final = 512
"""The bytes that a notice in JSON data takes beside that: names, quotes, the first items of a list."""
_FILLING_RESERVE_BYTES: Final = 900
"""Bytes kept free for the words of a style that fills the limits."""


def cut_to_fit(shape: Shape, policy: Policy, tool: str, room: int) -> Shape:
    """Cut a result of several parts no more than its limits and `room` ask for."""
    if not isinstance(shape, Envelope):
        return shape
    fills = policy.notice_style.fills
    reserve = _FILLING_RESERVE_BYTES if fills else policy.preview_bytes + notice_overhead(shape)
    return shape.within(within_room(policy.limits(tool), room), reserve, fills=fills)


def within_room(limits: Limits, room: int) -> Limits:
    """Return the limits with at most `room` bytes."""
    return limits._replace(max_bytes=min(limits.max_bytes, room))


def notice_overhead(shape: Shape) -> int:
    """Return the most bytes that a notice for the output has around its preview."""
    return NOTICE_BYTES + (DATA_BYTES if shape.content_type == JSON_TYPE else 0)


def escape_factor(shape: Shape) -> int:
    """Return how many bytes one byte of a preview becomes at most: JSON escapes quotes and newlines."""
    return 2 if shape.content_type == JSON_TYPE else 1
