"""The metrics at /metrics. Labels are bounded: none is a session, call or capture id.

With several workers the values of all processes are added up: see `multiprocess`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from overspill.wire import SIZE_BOUNDS
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values

from overspill_service.telemetry.multiprocess import (
    VARIABLE,
    SharedMemories,
    SharedValues,
    SumCollector,
    value_class,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.wire import Observation

    from overspill_service.catalog.records import Entry

NAMESPACE: Final = "overspill"
OTHER: Final = "other"
METHODS: Final = frozenset({"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"})
"""Methods with a label of their own. A client may send any method."""
MAX_TOOLS: Final = 200
MAX_TENANTS: Final = 1000
MAX_KEYS: Final = 1000
SIZES: Final = tuple(float(4**power) for power in range(5, 18))
"""Bucket bounds in bytes: 1 KiB to 16 GiB."""
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class BoundedLabel:
    """Keeps the first `most` values of a label, and replaces all others by `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        if value not in self._seen:
            if len(self._seen) >= self._most:
                return OTHER
            self._seen.add(value)
        return value


class MergedHistogram(Histogram):
    """A histogram that adds values which were counted elsewhere, in the same buckets."""

    def add(self, counts: Sequence[int], total: int) -> None:
        """`counts` has the number of values in each bucket alone, `total` is the sum of the values."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            bucket.inc(count)


class Metrics:
    """The service's counters, gauges and histograms, in a registry of their own."""

    def __init__(self) -> None:
        self._registry, self._memories = CollectorRegistry(), _shared_memories()
        self._tool, self._tenant = BoundedLabel(MAX_TOOLS), BoundedLabel(MAX_TENANTS)
        self._key = BoundedLabel(MAX_KEYS)
        self._count_outputs()
        self._count_captures()
        self._count_requests()
        self._gauge_free_space()

    def _count_outputs(self) -> None:
        labels = "tenant", "tool", "outcome"
        self._outputs = self._counter("tool_outputs", "Tool outputs seen by clients.", *labels)
        self._before = self._counter("tool_output_bytes", "Bytes of tool outputs as they were.", *labels)
        self._after = self._counter(
            "tool_output_kept_bytes", "Bytes of tool outputs that entered a conversation.", *labels
        )
        self._output_sizes = MergedHistogram(
            "tool_output_size_bytes",
            "Sizes of tool outputs as they were, from clients that report them.",
            ["tenant"],
            namespace=NAMESPACE,
            buckets=SIZE_BOUNDS,
            registry=self._registry,
        )

    def _count_captures(self) -> None:
        self._captures = self._counter("captures", "Captures by result.", "tenant", "tool", "result")
        self._raw = self._counter("capture_bytes", "Bytes of content of new captures.", "tenant", "tool")
        self._stored = self._counter("capture_stored_bytes", "Bytes stored for them.", "tenant", "tool")
        self._sizes = self._histogram("capture_size_bytes", "Sizes of new captures.", SIZES, "tenant")
        self._reads = self._counter("reads", "Reads of captures by mode.", "tenant", "mode")
        self._read_bytes = self._counter("read_bytes", "Bytes of answers to reads.", "tenant", "mode")
        self._swept = self._counter("swept_captures", "Captures removed by sweeps.")
        self._sweeps = self._counter("sweeps", "Sweeps by result.", "result")
        self._damaged = self._counter(
            "catalog_damaged_records", "Records of the catalog that cannot be decoded, by result.", "result"
        )
        self.clock_skew = Gauge(
            "clock_skew_seconds",
            "Seconds by which this machine's clock differs from that of the back ends.",
            namespace=NAMESPACE,
            registry=self._registry,
            multiprocess_mode="livemax",
        )
        self.orphan_bytes = Gauge(
            "orphan_bytes",
            "Stored bytes that no capture needs, running uploads included, at the last search for orphans.",
            namespace=NAMESPACE,
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self.uploads = Gauge(
            "uploads_in_progress",
            "Uploads in progress.",
            namespace=NAMESPACE,
            registry=self._registry,
            multiprocess_mode="livesum",
        )

    def _count_requests(self) -> None:
        route, operation = ("route", "method"), ("backend", "operation")
        self._requests = self._counter("http_requests", "Requests by route and status.", *route, "status")
        self._request_seconds = self._histogram("http_request_seconds", "Time to answer.", SECONDS, *route)
        self._operations = self._counter(
            "backend_operations", "Operations of the back ends.", *operation, "result"
        )
        self._operation_seconds = self._histogram(
            "backend_operation_seconds", "Time of back-end operations.", SECONDS, *operation
        )
        self._problems = self._counter("problems", "Problems answered, by code.", "code")
        self._count_uses()

    def _count_uses(self) -> None:
        """Requests by tenant and by key id. The labels are empty without a valid key."""
        who = "tenant", "key"
        self._uses = self._counter(
            "tenant_requests", "Requests by tenant, key and problem code.", *who, "code"
        )
        self._received = self._counter("tenant_received_bytes", "Bytes of bodies of requests.", *who)
        self._sent = self._counter("tenant_sent_bytes", "Bytes of bodies of answers.", *who)

    def _gauge_free_space(self) -> None:
        self._free_bytes, self._free_inodes = (
            Gauge(
                f"free_{what}",
                f"Free {what} of the disk that holds a back end in the data directory.",
                ["backend"],
                namespace=NAMESPACE,
                registry=self._registry,
                multiprocess_mode="livemax",
            )
            for what in ("bytes", "inodes")
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, namespace=NAMESPACE, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, namespace=NAMESPACE, buckets=buckets, registry=self._registry)

    def observation(self, tenant: str, seen: Observation) -> None:
        """Count tool outputs that a client reports."""
        labels = self._tenant(tenant), self._tool(seen.tool), seen.outcome.value
        self._outputs.labels(*labels).inc(seen.count)
        self._before.labels(*labels).inc(seen.bytes_before)
        self._after.labels(*labels).inc(seen.bytes_after)
        if seen.sizes is not None:
            self._output_sizes.labels(self._tenant(tenant)).add(seen.sizes, seen.bytes_before)

    def capture(self, entry: Entry, *, is_new: bool) -> None:
        """Count a stored capture, or a repeated one."""
        tenant, tool = self._tenant(entry.tenant), self._tool(entry.tool)
        self._captures.labels(tenant, tool, "created" if is_new else "repeated").inc()
        if is_new:
            self._raw.labels(tenant, tool).inc(entry.size)
            self._stored.labels(tenant, tool).inc(entry.stored_size)
            self._sizes.labels(tenant).observe(entry.size)

    def read(self, tenant: str, mode: str, size: int) -> None:
        """Count one read and the bytes of its answer."""
        self._reads.labels(self._tenant(tenant), mode).inc()
        self._read_bytes.labels(self._tenant(tenant), mode).inc(size)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else OTHER
        self._requests.labels(route, method, str(status)).inc()
        self._request_seconds.labels(route, method).observe(seconds)

    def use(self, tenant: str, key: str, code: str, *, received: int, sent: int) -> None:
        """Count a request by who sent it."""
        who = self._tenant(tenant), self._key(key)
        self._uses.labels(*who, code).inc()
        self._received.labels(*who).inc(received)
        self._sent.labels(*who).inc(sent)

    def free_space(self, backend: str, free_bytes: int, free_inodes: int) -> None:
        """Set the free space of a disk."""
        self._free_bytes.labels(backend).set(free_bytes)
        self._free_inodes.labels(backend).set(free_inodes)

    def problem(self, code: str) -> None:
        self._problems.labels(code).inc()

    def sweep(self, removed: int, *, is_done: bool) -> None:
        self._sweeps.labels("done" if is_done else "failed").inc()
        self._swept.inc(removed)

    def damaged_record(self, *, is_repaired: bool) -> None:
        """Count a damaged record of the catalog, each time that a listing meets it."""
        self._damaged.labels("mended" if is_repaired else "left").inc()

    def operation(self, backend: str, name: str, result: str, seconds: float) -> None:
        self._operations.labels(backend, name, result).inc()
        self._operation_seconds.labels(backend, name).observe(seconds)

    def exposition(self) -> bytes:
        """Return the metrics of all workers, in Prometheus' text format."""
        if self._memories is not None:
            registry = CollectorRegistry()
            registry.register(SumCollector(self._memories.descriptors))
            return generate_latest(registry)
        return generate_latest(self._registry)


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
