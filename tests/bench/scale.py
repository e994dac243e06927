"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes small enough to try everything in seconds where `is_quick`; such figures mean nothing."""

    rounds: int = 5
    is_quick: bool = False

    def pick(self, full: int, quick: int) -> int:
        return quick if self.is_quick else full
