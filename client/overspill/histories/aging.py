"""A budget for all results of a history together: the newest stay, of the others the oldest go first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from overspill.guard.assessment import assess
from overspill.shapes.content import examine, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.guard.policy import Policy
    from overspill.shapes.content import Shape


class Result(Protocol):
    """What a tool returned."""

    @property
    def value(self) -> Any:
        """Return what the message holds."""

    @property
    def tool(self) -> str:
        """Return the name of the tool, empty if it is not known."""


R = TypeVar("R", bound=Result)

NEWEST: Final = 3
"""Results at the end of a history that no budget takes away."""
_KEPT: Final = 2_000
"""Characters up to which an old result stays: there is little to gain."""
_PREVIEW: Final = 500
_STAND_IN: Final = 1_000
"""Bytes that stand in for an old result, about."""
_SLACK: Final = 0.75
"""The part of the budget to come down to. The next turns then have room, and the prompt stays cached."""


def aged(policy: Policy) -> Policy:
    """The policy for old results: most of them spill, with a short preview."""
    return replace(
        policy.limited(_KEPT, _KEPT),
        preview_bytes=min(policy.preview_bytes, _PREVIEW),
        lost_preview_bytes=min(policy.lost_preview, _PREVIEW),
    )


def beyond_budget(
    results: Sequence[R], policy: Policy, budget: int | None, newest: int
) -> list[tuple[R, Shape]]:
    """The results that have to go for all to come to three quarters of `budget` bytes, the oldest first.

    None are chosen while all are within `budget`, and never one of the `newest` last ones.
    """
    sizes = [_size(result) for result in results]
    if budget is None or sum(sizes) <= budget:
        return []
    surplus, chosen = sum(sizes) - budget * _SLACK, list[tuple[R, "Shape"]]()
    for result, size in zip(results[: max(0, len(results) - newest)], sizes, strict=False):
        if surplus <= 0:
            break
        content = _assessed(result, policy)
        if content is not None:
            chosen.append((result, content))
            surplus -= max(0, size - _STAND_IN)
    return chosen


def _size(result: Result) -> int:
    try:
        content = examine(result.value)
    except Exception:  # noqa: BLE001  (a value that cannot be looked at has no size)
        return 0
    return 0 if content is None else size_of(content)


def _assessed(result: Result, policy: Policy) -> Shape | None:
    try:
        return assess(result.value, result.tool, policy)
    except Exception:  # noqa: BLE001  (a value that cannot be looked at stays as it is)
        return None
