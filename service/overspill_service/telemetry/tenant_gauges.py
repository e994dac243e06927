"""Gauges that are set for all tenants at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from overspill_service.telemetry.metric import Metric

Amounts = tuple[float, ...]


def added(one: Amounts, other: Amounts) -> Amounts:
    return tuple(map(sum, zip(one, other, strict=True)))


class TenantGauges:
    """Some gauges by tenant. Of a tenant that has gone they are 0."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        series: Callable[..., Any],
        label: Callable[[str], str],
        *,
        join: Callable[[Amounts, Amounts], Amounts] = added,
    ) -> None:
        """`series` returns the series of a metric, `label` the label of a tenant.

        `join` makes one of the amounts of two tenants beyond the bound, which have the same label.
        """
        self._metrics, self._series, self._label, self._join = metrics, series, label, join
        self._known: set[str] = set()

    def set(self, amounts: Mapping[str, Amounts]) -> None:
        """Set the gauges of every tenant, in the order of the metrics."""
        joined = dict.fromkeys(self._known, (0.0,) * len(self._metrics))
        for tenant, each in amounts.items():
            label = self._label(tenant)
            joined[label] = self._join(joined[label], each) if label in joined else each
        self._known = set(joined)
        for label, values in joined.items():
            for metric, value in zip(self._metrics, values, strict=True):
                self._series(metric, label).set(value)
