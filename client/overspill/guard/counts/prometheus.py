"""A guard's counts in the agent's own Prometheus registry. Needs the extra `overspill[prometheus]`.

They are this process's alone: `prometheus_client` does not add up such collectors over several processes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from overspill.execution import forks
from overspill.guard.counts.tally import Names, OutputCount
from overspill.wire import SIZE_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import CollectorRegistry, Metric

    from overspill.guard.counts.tally import Tally
    from overspill.wire import Outcome

_PREFIX: Final = "overspill_client"
_LIMITS: Final = (*map(floatToGoString, SIZE_BOUNDS), "+Inf")

_collectors: Final[weakref.WeakKeyDictionary[CollectorRegistry, Collector]] = weakref.WeakKeyDictionary()
_lock: Final = threading.Lock()


def export(tally: Tally, owner: object, registry: CollectorRegistry = REGISTRY) -> None:
    """Add the counts of `tally` to those of the other tallies in `registry`.

    A second call is not an error. The counts stay in the figures when `owner` is gone.
    """
    with _lock:
        collector = _collectors.get(registry)
        if collector is None:
            collector = Collector()
            registry.register(collector)
            _collectors[registry] = collector
    collector.follow(tally, owner)


class Collector:
    """The sum of the tallies that it follows, for Prometheus."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = Names()
        self._tallies: list[Tally] = []
        self._ended: deque[Tally] = deque()
        self._past: dict[tuple[str, Outcome], OutputCount] = {}
        forks.register(self)

    def reset_after_fork(self) -> None:
        """Forget in a forked child what the parent's guards counted."""
        self._lock = threading.Lock()
        self._past = {}

    def follow(self, tally: Tally, owner: object) -> None:
        """Include the counts of `tally`, even after `owner` is gone."""
        with self._lock:
            self._settle()
            if tally not in self._tallies:
                self._tallies.append(tally)
                weakref.finalize(owner, self._ended.append, tally).atexit = False

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, as a registry asks for them when it takes a collector."""
        return _families({})

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all guards, with those that are gone."""
        with self._lock:
            self._settle()
            total = dict(self._past)
            for tally in self._tallies:
                self._add(tally, total)
        return _families(total)

    def _settle(self) -> None:
        """Add the counts of tallies whose owner is gone to the past, and drop the tallies."""
        while self._ended:
            tally = self._ended.popleft()
            self._tallies.remove(tally)
            self._add(tally, self._past)

    def _add(self, tally: Tally, total: dict[tuple[str, Outcome], OutputCount]) -> None:
        for (tool, outcome), count in tally.counts().items():
            key = self._name(tool), outcome
            total[key] = total.get(key, OutputCount()) + count


def _families(counts: Mapping[tuple[str, Outcome], OutputCount]) -> Iterator[Metric]:
    labels = ["tool", "outcome"]
    outputs = CounterMetricFamily(f"{_PREFIX}_tool_outputs", "Tool outputs seen.", labels=labels)
    before = CounterMetricFamily(
        f"{_PREFIX}_tool_output_bytes", "Bytes of tool outputs as they were.", labels=labels
    )
    after = CounterMetricFamily(
        f"{_PREFIX}_tool_output_kept_bytes",
        "Bytes of tool outputs that entered a conversation.",
        labels=labels,
    )
    whole = CounterMetricFamily(
        f"{_PREFIX}_tool_outputs_left_whole",
        "Tool outputs that were too long, and of which no shorter copy could be made.",
        labels=labels,
    )
    for (tool, outcome), count in counts.items():
        outputs.add_metric([tool, outcome], count.count)
        before.add_metric([tool, outcome], count.bytes_before)
        after.add_metric([tool, outcome], count.bytes_after)
        whole.add_metric([tool, outcome], count.left_whole)
    yield from (outputs, before, after, whole, _sizes(counts))


def _sizes(counts: Mapping[tuple[str, Outcome], OutputCount]) -> Metric:
    """Return one histogram over all tools: one for each tool would make thousands of series."""
    sizes = HistogramMetricFamily(
        f"{_PREFIX}_tool_output_size_bytes", "Sizes of tool outputs as they were.", labels=["outcome"]
    )
    by_outcome: dict[Outcome, OutputCount] = {}
    for (_, outcome), count in counts.items():
        by_outcome[outcome] = by_outcome.get(outcome, OutputCount()) + count
    for outcome, count in by_outcome.items():
        buckets = list(zip(_LIMITS, accumulate(count.sizes), strict=True))
        sizes.add_metric([outcome], buckets, sum_value=count.bytes_before)
    return sizes
