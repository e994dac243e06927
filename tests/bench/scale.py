"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class Scale:
    """Sizes small enough to try everything in seconds where `is_quick`; such figures mean nothing."""

    rounds: int = 5
    is_quick: bool = False

    def pick(self, full: N, quick: N) -> N:
        return quick if self.is_quick else full
