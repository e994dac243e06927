"""The columns of `overspill top`, each declared once: its value, from a tool's sums, and how it is shown.

The ratios are those of the recording rules and dashboards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.advice.figures import Sums
from overspill.cli.table import size
from overspill.text import quantities
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overspill.wire import Stats, StatsRow

NAME: Final = "name"
"""The value of `--sort` for the column of tools or tenants."""
_MAX_DIGITS: Final = 100_000
_WITH_A_DECIMAL: Final = 10


class Activity(Sums):
    """The figures of the outputs and captures of one tool or tenant in `minutes`, or of all of them."""

    def __init__(self, name: str, minutes: float, rows: Iterable[StatsRow]) -> None:
        super().__init__(rows)
        self.name: str = name
        self.minutes: float = minutes

    @property
    def outputs(self) -> int:
        """Outputs that clients saw."""
        return self.sum("tool_outputs")

    @property
    def spilled(self) -> int:
        """Those that did not stay whole in the conversation."""
        return self.outputs - self.sum("tool_outputs", Outcome.INLINE)

    @property
    def captures(self) -> int:
        """Captures that were stored, each once."""
        return self.sum("captures", "created")

    @property
    def kept_out(self) -> int:
        """Bytes of outputs less those that entered the conversation."""
        return self.sum("tool_output_bytes") - self.sum("tool_output_kept_bytes")


def activities(stats: Stats, *, by_tenant: bool) -> tuple[Activity, list[Activity]]:
    """Return the total, and the figures by tool or tenant. A name with only reads is only in the total."""
    minutes = (stats.until - stats.since).total_seconds() / 60
    rows: dict[str, list[StatsRow]] = {}
    for row in stats.rows:
        rows.setdefault(row.tenant if by_tenant else row.tool, []).append(row)
    found = [Activity(name, minutes, own) for name, own in rows.items()]
    return Activity("TOTAL", minutes, stats.rows), [each for each in found if each.outputs or each.captures]


def count(number: float) -> str:
    """Return a number in at most 7 characters: `12,345`, `1.2M`."""
    if abs(number) < _MAX_DIGITS:
        return f"{number:,.0f}"
    return "".join(quantities.scaled(number)).replace("K", "k")


def share(ratio: float) -> str:
    """Return a percentage that is 0 or 100 only if the ratio is."""
    percent = 100 * ratio
    if 0 < percent < 0.1:  # noqa: PLR2004  (what would be shown as 0.0)
        return "<0.1%"
    if 99.5 <= percent < 100:  # noqa: PLR2004  (what would be shown as 100)
        return ">99%"
    return f"{percent:.1f}%" if 0 < percent < _WITH_A_DECIMAL else f"{percent:.0f}%"


def rate(number: float) -> str:
    """Return a rate that is 0 only if nothing happened: `<0.1`, `0.3`, `12`, `1,234`."""
    if 0 < number < 0.1:  # noqa: PLR2004  (what would be shown as 0.0)
        return "<0.1"
    return f"{number:.1f}" if 0 < number < _WITH_A_DECIMAL else count(number)


class Figure(NamedTuple):
    """A column: its title, its value, None if there is none, and how that is shown.

    On a narrow terminal the figure with the highest `rank` is left out first.
    """

    title: str
    rank: int
    value: Callable[[Activity], float | None]
    shown: Callable[[float], str] = count


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


FIGURES: Final = {
    "outputs": Figure("OUTPUTS", 0, lambda of: of.outputs),
    "rate": Figure("/MIN", 9, lambda of: _ratio(of.outputs, of.minutes), rate),
    "spilled": Figure("SPILLED", 2, lambda of: _ratio(of.spilled, of.outputs), share),
    "truncated": Figure(
        "LOST", 7, lambda of: _ratio(of.sum("tool_outputs", Outcome.TRUNCATED), of.outputs), share
    ),
    "bytes": Figure("BYTES", 5, lambda of: of.sum("tool_output_bytes"), size),
    "kept-out": Figure("KEPT OUT", 1, lambda of: of.kept_out, size),
    "tokens": Figure("TOKENS", 4, lambda of: of.sum("tool_output_tokens_kept_out")),
    "captures": Figure("CAPTURES", 8, lambda of: of.captures),
    "read": Figure("READ", 3, lambda of: _ratio(of.sum("captures_read"), of.captures), share),
    "identical": Figure("SAME", 10, lambda of: of.sum("identical_tool_outputs")),
    "bursts": Figure("BURSTS", 6, lambda of: of.sum("tool_rerun_bursts")),
}
"""By the name that `--sort` takes."""
