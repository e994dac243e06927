"""The resources that this process uses, under the names that Prometheus' client libraries share.

The library's own collector knows one process only. So each worker copies its values to series of its own,
and a scrape adds up those of all workers.
"""

from __future__ import annotations

import platform
import threading
from typing import TYPE_CHECKING, Any

from prometheus_client import ProcessCollector

from overspill_service import release
from overspill_service.telemetry import definitions as d

if TYPE_CHECKING:
    from collections.abc import Callable

_GAUGES = {
    metric.full_name: metric
    for metric in (d.PROCESS_MEMORY, d.PROCESS_OPEN_FDS, d.PROCESS_MAX_FDS, d.PROCESS_START_TIME)
}


class ProcessUsage:
    def __init__(self, series: Callable[..., Any]) -> None:
        """`series` returns the series of a metric."""
        self._series = series
        self._collector = ProcessCollector(registry=None)
        self._lock = threading.Lock()
        self._cpu_seconds = 0.0
        """As much as the series has counted."""
        series(d.BUILD_INFO, release(), platform.python_version()).set(1)

    def measure(self) -> None:
        """Set the series, from any thread. Where there is no /proc they stay 0."""
        found = {sample.name: sample.value for each in self._collector.collect() for sample in each.samples}
        for name, metric in _GAUGES.items():
            if name in found:
                self._series(metric).set(found[name])
        with self._lock:  # another thread may have counted a later sample, or this one
            grown = max(0.0, found.get(d.PROCESS_CPU.full_name, 0.0) - self._cpu_seconds)
            self._cpu_seconds += grown
        self._series(d.PROCESS_CPU).inc(grown)
