"""The declaration of a metric: its name, what it counts, its labels."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from overspill_service.catalog.statistics import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMESPACE: Final = "overspill"


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """The way in which a gauge's values of several workers become one, in `prometheus_client`'s words."""

    SUM = "livesum"
    MAX = "livemax"


class Label(Struct, frozen=True):
    name: str
    values: tuple[str, ...] = ()
    """All possible values, or nothing if only events determine them."""


class Metric(Struct, frozen=True, kw_only=True):
    kind: Kind
    name: str
    """The name without the namespace, and without `_total`."""
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    """The inclusive upper bounds of a histogram's buckets, in the unit of the name."""
    merge: Merge = Merge.SUM
    namespace: str = NAMESPACE
    is_kept: bool = False
    """Whether the catalog keeps it over time, by tenant, tool and the label that is left."""
    is_detail: bool = False
    """Whether it is for a closer look only: no rule and no dashboard shows it."""

    @property
    def full_name(self) -> str:
        """The name in queries. A histogram's series add `_bucket`, `_sum` and `_count`."""
        name = f"{self.namespace}_{self.name}" if self.namespace else self.name
        return f"{name}_total" if self.kind is Kind.COUNTER else name

    def cell(self, labels: Sequence[str]) -> Cell:
        """Return what the statistics call the series with these label values."""
        values = {label.name: value for label, value in zip(self.labels, labels, strict=True)}
        values.pop("tenant")
        return Cell(self.name, values.pop("tool", ""), *values.values())

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The labels whose values only events determine."""
        return tuple(label.name for label in self.labels if not label.values)


def counter(name: str, text: str, *labels: Label, is_kept: bool = False) -> Metric:
    return Metric(kind=Kind.COUNTER, name=name, help=text, labels=labels, is_kept=is_kept)


def kept(name: str, text: str, *labels: Label) -> Metric:
    return counter(name, text, *labels, is_kept=True)


def gauge(name: str, text: str, *labels: Label, merge: Merge = Merge.SUM) -> Metric:
    return Metric(kind=Kind.GAUGE, name=name, help=text, labels=labels, merge=merge)


def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: Label) -> Metric:
    return Metric(kind=Kind.HISTOGRAM, name=name, help=text, labels=labels, buckets=buckets)


def of_process(kind: Kind, name: str, text: str) -> Metric:
    """Declare a metric under the name that Prometheus' client libraries share."""
    return Metric(kind=kind, name=f"process_{name}", help=text, namespace="")
