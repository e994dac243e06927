"""The measured figures beside their goals, as a table in Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Form = Callable[[float], str]

HEADINGS: Final = ("benchmark", "what", "measured", "goal", "beaten", "in detail")


def ratio(value: float) -> str:
    return f"{value:.2f}"


def fine_ratio(value: float) -> str:
    return f"{value:.3f}"


def fraction(value: float) -> str:
    return f"1/{1 / value:,.0f}" if 0 < value < 1 else ratio(value)


def number(value: float) -> str:
    return f"{value:g}"


def mebibytes(value: float) -> str:
    return f"{value / 2**20:.0f} MiB"


def microseconds(value: float) -> str:
    return f"{value * 1e6:.2f} µs"


@dataclass(frozen=True)
class Goal:
    limit: float
    is_least: bool = False

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit

    def shown(self, form: Form) -> str:
        return f"at {'least' if self.is_least else 'most'} {form(self.limit)}"


@dataclass(frozen=True)
class Row:
    what: str
    value: float
    goal: Goal | None = None
    form: Form = field(default=ratio)
    detail: str = ""

    @property
    def is_beaten(self) -> bool | None:
        return None if self.goal is None else self.goal.is_met(self.value)

    @property
    def cells(self) -> tuple[str, ...]:
        goal = "" if self.goal is None else self.goal.shown(self.form)
        beaten = {True: "yes", False: "**no**", None: ""}[self.is_beaten]
        return self.what, self.form(self.value), goal, beaten, self.detail


def listed(values: Mapping[str, float], form: Form = ratio) -> str:
    """Several values for a row's detail."""
    return ", ".join(f"{name} {form(value)}" for name, value in values.items())


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def head() -> str:
    return f"{line(HEADINGS)}\n{line(['---'] * len(HEADINGS))}"
