"""Which results of a history are shortened, when the model's provider refused it as too large."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from overspill.histories.overflow import Kind
from overspill.shapes.fields import text_field

if TYPE_CHECKING:
    from overspill.histories.history import ToolResult
    from overspill.histories.overflow import Overflow

WINDOW_SHARE: Final = 0.3
"""The part of the context window that one result may have at most where the window is known."""
KEPT: Final = 2_000
"""Characters of a result that always stay: shorter ones are not worth spilling."""
THRESHOLDS: Final = (50_000, 16_000, 6_000, KEPT)
"""Characters above which results spill, round after round, where nobody says how much is too much."""
_CHARS_PER_TOKEN: Final = 4
_HEADROOM: Final = 0.9
"""The part of the limit to come down to: the model needs room to answer, and counts are not exact."""
_MODELS: Final = frozenset(
    {"assistant", "model", "ai", "AIMessageChunk", "function_call", "custom_tool_call", "reasoning"}
)
"""Roles and types of what the model said."""
_MAX_DEPTH: Final = 12


def chars_to_shed(refused: Overflow | None, messages: list[Any]) -> float | None:
    """Return how many characters have to go, by the provider's numbers; None if it gives none.

    A token has at least as many characters as the history shows: tools and the answer are in the count too.
    """
    if refused is None or refused.limit is None or refused.actual is None:
        return None
    each = total_chars(messages) / refused.actual
    if refused.kind is Kind.CONTEXT:
        each = max(each, _CHARS_PER_TOKEN)
    return (refused.actual - refused.limit * _HEADROOM) * each


def largest_at_the_end(sizes: list[tuple[int, ToolResult]], shed: float) -> list[ToolResult]:
    """Return the largest results in the shortest end of the history that can give up `shed` characters.

    They give up all but what always stays of a result. All results if that is not enough.
    """
    picked: list[ToolResult] = []
    for size, result in _largest_first(_ending(sizes, shed)):
        if shed <= 0:
            break
        picked.append(result)
        shed -= max(0, size - KEPT)
    return picked


def above_threshold(sizes: list[tuple[int, ToolResult]], window: int | None) -> list[ToolResult]:
    """Return the results above the highest threshold that any is above; all if none is.

    `window` is the model's context in tokens, where it is known: no result may fill much of it.
    """
    ceiling = THRESHOLDS[0]
    if window is not None:
        ceiling = min(ceiling, max(KEPT, int(window * WINDOW_SHARE * _CHARS_PER_TOKEN)))
    largest = _largest_first(sizes)
    for threshold in (ceiling, *(threshold for threshold in THRESHOLDS if threshold < ceiling)):
        picked = [result for size, result in largest if size > threshold]
        if picked:
            return picked
    return [result for _, result in largest]


def last_answer(messages: list[Any]) -> int:
    """Return where the model spoke last, or -1: up to there the provider may have the history cached."""
    for at in range(len(messages) - 1, -1, -1):
        if {text_field(messages[at], "type"), text_field(messages[at], "role")} & _MODELS:
            return at
    return -1


def _ending(sizes: list[tuple[int, ToolResult]], shed: float) -> list[tuple[int, ToolResult]]:
    """Return the shortest end of the history in which results can give up `shed` characters, or all of it."""
    for at in range(len(sizes) - 1, -1, -1):
        shed -= max(0, sizes[at][0] - KEPT)
        if shed <= 0:
            return sizes[at:]
    return sizes


def _largest_first(sizes: list[tuple[int, ToolResult]]) -> list[tuple[int, ToolResult]]:
    """Sort the results by size; of equal ones the earlier stays first."""
    return sorted(sizes, key=itemgetter(0), reverse=True)


def total_chars(value: Any, depth: int = 0) -> int:
    """Return the characters of all texts in messages of any form, to see whether they become fewer."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if depth > _MAX_DEPTH or value is None or isinstance(value, (bool, int, float, type)):
        return 0
    if isinstance(value, Mapping):
        return sum(total_chars(item, depth + 1) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(total_chars(item, depth + 1) for item in value)
    return total_chars(getattr(value, "__dict__", None), depth + 1)
