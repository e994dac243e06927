"""PromQL that several dashboards share. Metrics are named by their declarations: a typo is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overspill_service.telemetry.metric import Metric

SPILLED: Final = 'outcome!="inline"'
READS: Final = 'route=~"/v1/captures/.*/(head|tail|lines|grep|summary)"'
"""Bounded reads, which are answered at once. Content and uploads take as long as they are large."""


def selector(metric: Metric, *matchers: str, suffix: str = "") -> str:
    """Return the series of a metric that match all of the matchers, such as `tool="grep"`."""
    given = ", ".join(filter(None, matchers))
    return f"{metric.full_name}{suffix}" + (f"{{{given}}}" if given else "")


def rate(metric: Metric, *matchers: str, by: str = "", suffix: str = "") -> str:
    """Return the sum of the rates per second, by labels if there are any."""
    return f"sum{_by(by)} (rate({selector(metric, *matchers, suffix=suffix)}[$__rate_interval]))"


def total(metric: Metric, *matchers: str, by: str = "") -> str:
    """Return by how much a counter grew in the dashboard's time."""
    return f"sum{_by(by)} (increase({selector(metric, *matchers)}[$__range]))"


def ratio(part: str, whole: str) -> str:
    """Return a quotient that has no value if the whole is 0."""
    return f"{part} / ({whole} > 0)"


def top(count: int, expr: str) -> str:
    return f"topk({count}, {expr})"


def quantile(share: float, metric: Metric, *matchers: str, by: str = "") -> str:
    """Return a quantile of a histogram, estimated from its buckets."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(metric, *matchers, by=labels, suffix='_bucket')})"


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""
