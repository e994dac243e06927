"""Chooses the results of a history that have to shrink, so that a call which was too large goes through."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.histories.provider_errors import OverflowKind
from overspill.shapes.fields import text_field

if TYPE_CHECKING:
    from overspill.histories.provider_errors import Overflow
    from overspill.histories.tool_results import ToolResult

KEPT_CHARS: Final = 2_000
"""Characters kept of a result. Shorter results are not worth spilling."""
_WINDOW_SHARE: Final = 0.3
"""The share of the context window that one result may have at most, if the window is known."""
_THRESHOLDS: Final = (50_000, 16_000, 6_000, KEPT_CHARS)
"""Results of more characters spill, round after round, if nobody says how much is too much."""
_CHARS_PER_TOKEN: Final = 4
_TARGET_SHARE: Final = 0.9
"""The share of the limit to come down to: the model needs room to answer, and counts are not exact."""
_MODELS: Final = frozenset(
    {"assistant", "model", "ai", "AIMessageChunk", "function_call", "custom_tool_call", "reasoning"}
)
"""Roles and types of what the model said."""
_MAX_DEPTH: Final = 12


class Candidate(NamedTuple):
    """A result that can spill, and its size in bytes."""

    size: int
    result: ToolResult

    @property
    def excess(self) -> int:
        """Roughly how much spilling it takes away."""
        return max(0, self.size - KEPT_CHARS)


def next_results(
    messages: list[Any],
    candidates: list[Candidate],
    refused: Overflow | None,
    round_number: int,
    window: int | None,
) -> list[ToolResult]:
    """Choose the largest candidates, as many as take the history below the provider's limit.

    Those at the end of the history come first: what stands before them is in the provider's cache. Without
    numbers of the provider a result's size decides; `window`, in tokens, bounds it. Each round asks for twice
    as much as the one before, and the last round for all, because the numbers may be wrong.
    """
    if round_number > len(_THRESHOLDS):
        return [each.result for each in candidates]
    surplus = _surplus(refused, total_chars(messages))
    if surplus is not None:
        surplus *= 2 ** (round_number - 1)
        return _fewest_to_free(_largest_first(_at_the_end(candidates, surplus)), surplus)
    new = [each for each in candidates if int(each.result.path[0]) > _last_answer(messages)]
    return _above_threshold(_largest_first(new or candidates), refused, window)


def _surplus(refused: Overflow | None, characters: int) -> float | None:
    """Return the characters that have to go, by the provider's numbers. None if it gives none.

    The provider counts tools and the answer too, which are not in the history. So a token is at least as many
    characters as the history has for each token of the count.
    """
    if refused is None or refused.limit is None or refused.actual is None:
        return None
    each = characters / refused.actual
    if refused.kind is OverflowKind.CONTEXT:
        each = max(each, _CHARS_PER_TOKEN)
    return (refused.actual - refused.limit * _TARGET_SHARE) * each


def _at_the_end(candidates: list[Candidate], surplus: float) -> list[Candidate]:
    """Return the shortest end of the history whose results can give up `surplus`, or all of it."""
    for at in range(len(candidates) - 1, -1, -1):
        surplus -= candidates[at].excess
        if surplus <= 0:
            return candidates[at:]
    return candidates


def _largest_first(candidates: list[Candidate]) -> list[Candidate]:
    """Sort by size; of equal ones the earlier comes first."""
    return sorted(candidates, key=attrgetter("size"), reverse=True)


def _fewest_to_free(candidates: list[Candidate], surplus: float) -> list[ToolResult]:
    """Return the first candidates that together give up `surplus`."""
    chosen: list[ToolResult] = []
    for each in candidates:
        if surplus <= 0:
            break
        chosen.append(each.result)
        surplus -= each.excess
    return chosen


def _above_threshold(
    candidates: list[Candidate], refused: Overflow | None, window: int | None
) -> list[ToolResult]:
    """Return the candidates above the first threshold that any of them is above."""
    ceiling = _THRESHOLDS[0]
    if refused is not None and refused.kind is OverflowKind.CONTEXT and refused.limit:
        window = refused.limit
    if window is not None:
        ceiling = min(ceiling, max(KEPT_CHARS, int(window * _WINDOW_SHARE * _CHARS_PER_TOKEN)))
    for threshold in (ceiling, *(lower for lower in _THRESHOLDS if lower < ceiling)):
        chosen = [each.result for each in candidates if each.size > threshold]
        if chosen:
            return chosen
    return [each.result for each in candidates]


def _last_answer(messages: list[Any]) -> int:
    """Return where the model spoke last: the provider took the history up to there, and may cache it."""
    for at in range(len(messages) - 1, -1, -1):
        if {text_field(messages[at], "type"), text_field(messages[at], "role")} & _MODELS:
            return at
    return -1


def total_chars(value: Any, depth: int = 0) -> int:
    """Return the characters of all texts in messages of any form.

    This only has to tell whether a history became smaller.
    """
    if isinstance(value, (str, bytes)):
        return len(value)
    if depth > _MAX_DEPTH or value is None or isinstance(value, (bool, int, float, type)):
        return 0
    if isinstance(value, Mapping):
        return sum(total_chars(item, depth + 1) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(total_chars(item, depth + 1) for item in value)
    return total_chars(getattr(value, "__dict__", None), depth + 1)
