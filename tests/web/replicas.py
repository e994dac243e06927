"""What tests of limits across replicas need: a clock, and a catalog by which replicas hear of each other."""

from __future__ import annotations


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Exchange:
    """A catalog by which replicas hear of each other at once."""

    def __init__(self) -> None:
        self.told: dict[str, dict[str, float]] = {}

    async def exchange(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        told = self.told.setdefault(name, {})
        told[holder] = figure
        return sum(told.values()) - figure
