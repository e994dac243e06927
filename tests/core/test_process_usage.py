"""The resources that a process uses, as several threads measure them."""

from __future__ import annotations

import os
import threading
from typing import Any

from overspill_service.telemetry import definitions as d
from overspill_service.telemetry.process_usage import ProcessUsage
from prometheus_client import CollectorRegistry, Counter, Gauge


class SlowCounter(Counter):
    """While the first amount is added, another thread measures too."""

    usage: ProcessUsage
    other: threading.Thread | None = None

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        if self.other is None:
            self.other = threading.Thread(target=self.usage.measure)
            self.other.start()
            self.other.join()
        super().inc(amount, exemplar)


def test_cpu_time_is_counted_once_if_two_threads_measure_it_at_once() -> None:
    registry = CollectorRegistry()
    cpu = SlowCounter("cpu_seconds", "CPU time.", registry=registry)
    gauge = Gauge("other", "Others.", registry=registry)

    def series(metric: Any, *_: str) -> Any:
        return cpu if metric is d.PROCESS_CPU else gauge

    cpu.usage = ProcessUsage(series)
    cpu.usage.measure()
    counted = registry.get_sample_value("cpu_seconds_total")
    used = os.times()

    assert counted is not None
    assert 0 < counted <= used.user + used.system
