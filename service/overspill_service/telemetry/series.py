"""The time series of the declared metrics, in a registry of this process.

With several workers the values of all processes are added up: see `multiprocess`.
"""

from __future__ import annotations

import itertools
import os
from bisect import bisect_left
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    values,
)

from overspill_service.telemetry.definitions import METRICS
from overspill_service.telemetry.metric import Kind, Metric
from overspill_service.telemetry.multiprocess import (
    VARIABLE,
    SharedMemories,
    SharedValues,
    SumCollector,
    value_class,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

disable_created_metrics()  # type: ignore[no-untyped-call]  # one more series for each counter and histogram, which no query here uses


class Series:
    """Finds the series of a metric by its label values, and makes it at its first event.

    Expected ones are shown as 0 before that, and each metric with its help. They are made when somebody asks
    for the metrics: it takes milliseconds, which would delay the start and a tool's first request.
    """

    def __init__(self) -> None:
        self._memories = _shared_memories()
        self._metrics: dict[str, Counter | Gauge | Histogram] = {}
        self._found: dict[tuple[str, ...], Any] = {}
        self._expected: deque[tuple[Metric, tuple[str, ...]]] = deque()
        self.prepare()

    def of(self, metric: Metric, *labels: str) -> Any:
        """Return the series with these label values: a counter, gauge or histogram of `prometheus_client`."""
        key = (metric.name, *labels)
        series = self._found.get(key)
        if series is None:
            parent = self._parent(metric)
            series = self._found[key] = parent.labels(*labels) if labels else parent
        return series

    def _parent(self, metric: Metric) -> Counter | Gauge | Histogram:
        parent = self._metrics.get(metric.name)
        if parent is None:  # a thread that collects may make it too: both use the one that comes first
            parent = self._metrics.setdefault(metric.name, _make(metric))
        return parent

    def expect(self, metric: Metric, *labels: str) -> None:
        """Show a series as 0, not as absent. With several workers it is made at once: others show it."""
        if self._memories is None:
            self._expected.append((metric, labels))
        else:
            self.of(metric, *labels)

    def prepare(self, **known: str) -> None:
        """Expect the series whose open labels are exactly the `known` ones."""
        for metric in METRICS:
            if metric.open_labels == tuple(known):
                choices = (label.values or (known[label.name],) for label in metric.labels)
                for labels in itertools.product(*choices):
                    self.expect(metric, *labels)

    @property
    def registry(self) -> CollectorRegistry:
        """The registry of all workers' values."""
        if self._memories is None:
            while self._expected:
                metric, labels = self._expected.popleft()
                self.of(metric, *labels)
            return self._own_registry
        registry = CollectorRegistry()
        registry.register(SumCollector(self._memories.descriptors))
        return registry

    @cached_property
    def _own_registry(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        for metric in METRICS:
            registry.register(self._parent(metric))
        return registry


class PlainCounter(Counter):
    """A counter without the checks that the declarations have made."""

    def inc(self, amount: float = 1, exemplar: object = None) -> None:  # noqa: ARG002  (the library's)
        self._value.inc(amount)


class MergedHistogram(Histogram):
    """A histogram that adds values which were counted elsewhere, in the same buckets."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        if exemplar:
            super().observe(amount, exemplar)
            return
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)

    def add(self, counts: Sequence[int], total: int) -> None:
        """`counts` has the number of values in each bucket alone, `total` is the sum of the values."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            bucket.inc(count)


def _make(metric: Metric) -> Counter | Gauge | Histogram:
    labels = [label.name for label in metric.labels]
    names = {"name": metric.name, "documentation": metric.help, "namespace": metric.namespace}
    if metric.kind is Kind.COUNTER:
        return PlainCounter(**names, labelnames=labels, registry=None)
    if metric.kind is Kind.GAUGE:
        return Gauge(**names, labelnames=labels, registry=None, multiprocess_mode=metric.merge.value)
    return MergedHistogram(**names, labelnames=labels, registry=None, buckets=metric.buckets)


def _shared_memories() -> SharedMemories | None:
    """Keep this worker's values in shared memory.

    Return the memories of all workers, None without workers.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    memories = SharedMemories.of(given)
    values.ValueClass = value_class(SharedValues(memories.descriptors[memories.own]))
    return memories
