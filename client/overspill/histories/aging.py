"""One budget for all results of a history: the newest stay, and the oldest of the others go first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.guard.assessment import assess
from overspill.shapes.examination import examine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.guard.policy import Policy
    from overspill.histories.tool_results import ToolResult
    from overspill.shapes.shape import Shape

NEWEST: Final = 3
"""Results at the end of a history that stay whatever the budget is."""
_SHORT_CHARS: Final = 2_000
"""An old result of up to this many characters stays: there is little to gain."""
_PREVIEW_BYTES: Final = 500
_NOTICE_BYTES: Final = 1_000
"""About the bytes of the notice of an old result."""
_TARGET_SHARE: Final = 0.75
"""The share of the budget to come down to. The next turns then fit too, and the prompt stays cached."""


def for_old_results(policy: Policy) -> Policy:
    """Return the policy for old results: most of them spill, with a short preview."""
    return policy.limited(_SHORT_CHARS, _SHORT_CHARS).with_previews(_PREVIEW_BYTES)


def beyond_budget(
    results: Sequence[ToolResult], policy: Policy, budget: int | None, newest: int
) -> list[tuple[ToolResult, Shape]]:
    """Choose results to replace, the oldest first, until all come to three quarters of `budget` bytes.

    Choose none while all are within `budget`, and never one of the `newest` last ones.
    """
    sizes = [_size(result) for result in results]
    if budget is None or sum(sizes) <= budget:
        return []
    surplus, chosen = sum(sizes) - budget * _TARGET_SHARE, list[tuple["ToolResult", "Shape"]]()
    for result, size in zip(results[: max(0, len(results) - newest)], sizes, strict=False):
        if surplus <= 0:
            break
        shape = assessed(result, policy)
        if shape is not None:
            chosen.append((result, shape))
            surplus -= max(0, size - _NOTICE_BYTES)
    return chosen


def _size(result: ToolResult) -> int:
    try:
        shape = examine(result.value)
    except Exception:  # noqa: BLE001  (a value that cannot be examined has no size)
        return 0
    return 0 if shape is None else shape.size


def assessed(result: ToolResult, policy: Policy) -> Shape | None:
    """Return the shape of a result that has to spill, None for any other."""
    try:
        return assess(result.value, result.tool, policy)
    except Exception:  # noqa: BLE001  (a value that cannot be examined stays as it is)
        return None
