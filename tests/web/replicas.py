"""Helpers for tests of limits across replicas: a clock, and a catalog through which replicas share counts."""

from __future__ import annotations

import time


class Clock:
    """A clock that stands still until a test moves it, or lets it go."""

    def __init__(self) -> None:
        self.now = 100.0
        self._since: float | None = None

    def __call__(self) -> float:
        return self.now + (0.0 if self._since is None else time.monotonic() - self._since)

    def go(self) -> None:
        self._since = time.monotonic()


class ToldFigures:
    """A catalog by which replicas hear of each other at once."""

    def __init__(self) -> None:
        self.told: dict[str, dict[str, float]] = {}

    async def tell(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        told = self.told.setdefault(name, {})
        told[holder] = figure
        return sum(told.values()) - figure
