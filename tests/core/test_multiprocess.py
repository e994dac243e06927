"""Figures in memory that several processes share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from overspill_service.telemetry import multiprocess
from overspill_service.telemetry.multiprocess import (
    SharedMemories,
    SharedValues,
    SumCollector,
    entries,
    new_memory,
    value_class,
)
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedMemories]:
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    made = SharedMemories(0, [new_memory(), new_memory()])
    yield SharedMemories.of(str(made))
    for descriptor in made.descriptors:
        os.close(descriptor)


def worker(memories: SharedMemories, number: int) -> tuple[Counter, Histogram, Gauge, Gauge]:
    """The metrics of one process."""
    values.ValueClass = value_class(SharedValues(memories.descriptors[number]))
    registry: Any = CollectorRegistry()
    return (
        Counter("seen", "Seen.", ["tool"], registry=registry),
        Histogram("seconds", "Time.", buckets=(1, 2), registry=registry),
        Gauge("now", "Now.", registry=registry, multiprocess_mode="livesum"),
        Gauge("most", "Most.", registry=registry, multiprocess_mode="livemax"),
    )


def shown(memories: SharedMemories) -> str:
    registry = CollectorRegistry()
    registry.register(SumCollector(memories.descriptors))
    return generate_latest(registry).decode()


def test_figures_of_all_processes_are_added_up(memories: SharedMemories) -> None:
    for number in range(2):
        counter, histogram, gauge, most = worker(memories, number)
        counter.labels("grep").inc(number + 1)
        counter.labels('a"b').inc()
        histogram.observe(1.5)
        gauge.set(5)
        most.set(number)
    text = shown(memories)

    assert 'seen_total{tool="grep"} 3.0' in text
    assert 'seen_total{tool="a\\"b"} 2.0' in text
    assert 'seconds_bucket{le="1.0"} 0.0' in text
    assert 'seconds_bucket{le="2.0"} 2.0' in text
    assert 'seconds_bucket{le="+Inf"} 2.0' in text
    assert "seconds_count 2.0" in text
    assert "seconds_sum 3.0" in text
    assert "\nnow 10.0" in text
    assert "\nmost 1.0" in text


def test_a_worker_goes_on_with_the_figures_of_the_one_it_replaces_but_for_gauges(
    memories: SharedMemories,
) -> None:
    counter, _, gauge, _ = worker(memories, 0)
    counter.labels("grep").inc(3)
    gauge.set(7)
    counter, _, gauge, _ = worker(memories, 0)
    counter.labels("grep").inc()

    assert 'seen_total{tool="grep"} 4.0' in shown(memories)
    assert "\nnow 0.0" in shown(memories)


def test_more_figures_get_more_memory(memories: SharedMemories) -> None:
    counter, *_ = worker(memories, 0)
    for number in range(3000):
        counter.labels(f"tool-{number}").inc(number)
    found = {key: value for key, value, _ in entries(memories.descriptors[0])}

    assert sum(value for key, value in found.items() if "seen_total" in key) == sum(range(3000))
    assert os.fstat(memories.descriptors[0]).st_size > multiprocess.FIRST_SIZE


def test_a_figure_without_room_costs_nobody_anything_and_is_told_once(
    memories: SharedMemories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(multiprocess, "MAX_SIZE", multiprocess.FIRST_SIZE)
    counter, *_ = worker(memories, 0)
    for number in range(2000):
        counter.labels(f"tool-{number}").inc()

    assert 'seen_total{tool="tool-0"} 1.0' in shown(memories)
    assert caplog.text.count("no memory for more figures") == 1
