"""The amounts that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """Sizes small enough to try everything in seconds where `is_quick`; such figures mean nothing."""

    rounds: int = 5
    is_quick: bool = False
    minutes: float = 0
    """How long the abusive tenant goes on at the end of `shares`; 0 leaves that out."""

    def pick(self, full: T, quick: T) -> T:
        return quick if self.is_quick else full

    def some(self, cases: Sequence[T]) -> Sequence[T]:
        """Return all cases; the first and the last of them where `is_quick`."""
        return [*cases[:1], *cases[1:][-1:]] if self.is_quick else cases
