"""The events that metrics count. Labels are bounded: see `names`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service.catalog.statistics import OTHER
from overspill_service.telemetry import definitions as d
from overspill_service.telemetry.cohorts import CohortCounts
from overspill_service.telemetry.live import LiveMetrics
from overspill_service.telemetry.metric import Metric
from overspill_service.telemetry.names import MAX_TENANTS, BoundedNames, ToolNames
from overspill_service.telemetry.pending import PendingReads, PendingSums
from overspill_service.telemetry.process_usage import ProcessUsage
from overspill_service.telemetry.series import Series
from overspill_service.telemetry.tenant_gauges import TenantGauges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

    from overspill_service.catalog import Catalog, Statistics
    from overspill_service.catalog.backlogs import Backlog
    from overspill_service.catalog.quotas import Totals
    from overspill_service.catalog.records import Entry

METHODS: Final = frozenset({"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"})
"""Methods with a label of their own. A client may send any method."""
MAX_KEYS: Final = 1000
AT_ONCE_SECONDS: Final = 60.0
"""A capture that is read within this time was needed at once."""
_STORED: Final = d.STORED_CAPTURES, d.STORED_BYTES, d.STORED_CONTENT_BYTES
_SPOOLED: Final = d.SPOOLED_CAPTURES, d.SPOOLED_BYTES, d.SPOOLED_AGE
_PREVIEWS: Final = frozenset(wire.PreviewKind)
_OBSERVED: Final = {
    metric.name: metric
    for metric in (
        *(d.TOOL_OUTPUTS, d.TOOL_OUTPUT_BYTES, d.TOOL_OUTPUT_KEPT_BYTES),
        *(d.TOKENS_KEPT_OUT, d.IDENTICAL_OUTPUTS, d.RERUN_BURSTS),
    )
}
"""The metrics that observations count, by their names."""
OBSERVED_AT_ONCE: Final = 10
"""Observations that are added up before other requests go on: a few milliseconds if their tools are new."""
_Count = tuple[Metric, tuple[str, ...], int]
"""A metric, the values of its labels, and what to add."""


class Metrics:
    """The service's metrics, by what happens."""

    def __init__(self) -> None:
        self._series = Series()
        self._of = self._series.of
        self._tenants, self._tools, self._key = BoundedNames(MAX_TENANTS), ToolNames(), BoundedNames(MAX_KEYS)
        self._sums, self._reads = PendingSums(), PendingReads()
        self._cohorts = CohortCounts(self._sums)
        self._stored = TenantGauges(_STORED, self._of, self._tenant)
        self._spooled = TenantGauges(_SPOOLED, self._of, self._tenant, join=max)
        self.live = LiveMetrics(self._of, self._tenant)
        self._prepared: set[tuple[str, ...]] = set()
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        """The series of a request, by route, method and status."""
        self._used: dict[tuple[str, str, str], tuple[Counter, Counter, Counter]] = {}
        """The series of requests by tenant, key and code."""
        self._process = ProcessUsage(self._of)

    @property
    def uploads(self) -> Gauge:
        """The uploads in progress."""
        gauge: Gauge = self._of(d.UPLOADS_IN_PROGRESS)
        return gauge

    async def observe(self, catalog: Statistics, tenant: str, seen: wire.Observations, now: float) -> bool:
        """Count tool outputs that a client reports. Return False if this batch was counted before.

        The statistics get them in one step with the batch's name. Raises `CatalogUnavailable`.
        """
        counts = await self._totals(tenant, seen.observations)
        sums = {metric.cell(labels): amount for metric, labels, amount in counts}
        memory = wire.BATCH_MEMORY
        await self._cohorts.observe(catalog, tenant, seen, now)
        if not await catalog.add_sums(tenant, sums, now=now, batch=seen.batch, memory=memory):
            return False
        self._sums.add_fleet(tenant, sums)
        for metric, labels, amount in counts:
            self._of(metric, *labels).inc(amount)
        sizes = self._of(d.TOOL_OUTPUT_SIZE, self._tenant(tenant))
        for each in seen.observations:
            if each.sizes is not None:
                sizes.add(each.sizes, each.bytes_before)
        return True

    async def _totals(self, tenant: str, seen: Sequence[wire.Observation]) -> list[_Count]:
        """Return the sums of observations. Other requests go on meanwhile."""
        totals: dict[tuple[str, tuple[str, ...]], int] = {}
        for at, each in enumerate(seen):
            for metric, labels, amount in self._counts(tenant, each):
                if amount:
                    totals[metric.name, labels] = totals.get((metric.name, labels), 0) + amount
            if at % OBSERVED_AT_ONCE == OBSERVED_AT_ONCE - 1:
                await asyncio.sleep(0)
        return [(_OBSERVED[name], labels, amount) for (name, labels), amount in totals.items()]

    def _counts(self, tenant: str, seen: wire.Observation) -> Iterable[_Count]:
        owner = self._tool(tenant, seen.tool)
        labels = *owner, seen.outcome.value
        yield d.TOOL_OUTPUTS, labels, seen.count
        yield d.TOOL_OUTPUT_BYTES, labels, seen.bytes_before
        yield d.TOOL_OUTPUT_KEPT_BYTES, labels, seen.bytes_after
        yield d.TOKENS_KEPT_OUT, owner, seen.tokens_kept_out
        yield d.IDENTICAL_OUTPUTS, owner, seen.identical
        yield d.RERUN_BURSTS, owner, seen.bursts

    def capture(self, entry: Entry, *, is_new: bool) -> None:
        """Count a stored capture, or a repeated one."""
        tenant, tool = self._tool(entry.tenant, entry.tool)
        self._add(entry.tenant, d.CAPTURES, tenant, tool, "created" if is_new else "repeated")
        if is_new:
            self._add(entry.tenant, d.CAPTURE_BYTES, tenant, tool, amount=entry.size)
            self._add(entry.tenant, d.CAPTURE_STORED_BYTES, tenant, tool, amount=entry.stored_size)
            self._add(entry.tenant, d.CAPTURES_BY_SIZE, tenant, tool, _size_class(entry.size))
            self._of(d.CAPTURE_SIZE, tenant).observe(entry.size)
            self._of(d.PREVIEWED_CAPTURES, tenant, _preview(entry)).inc()
            waited = _waited(entry)
            if waited is not None:
                self._of(d.SPOOL_UPLOADS, tenant).inc()
                self._of(d.SPOOL_WAIT, tenant).observe(waited)
            self._cohorts.capture(entry)

    def read(self, entry: Entry, mode: str, size: int, now: float, reader: str = "") -> None:
        """Count one read and the bytes of its answer. `reader` is the id of a key."""
        tenant = self._tenant(entry.tenant)
        self._add(entry.tenant, d.READS, *self._tool(entry.tenant, entry.tool), mode)
        self._of(d.READ_BYTES, tenant, mode).inc(size)
        self._cohorts.read(entry, size)
        self._reads.add(entry, now, reader)

    def scan_batch(self, tenant: str, waited: float, cpu: float) -> None:
        """Count one batch of a scan: the seconds that it waited for a thread, and its seconds of CPU time."""
        label = self._tenant(tenant)
        self._of(d.SCAN_CPU, label).inc(cpu)
        self._of(d.SCAN_WAIT, label).observe(waited)

    async def write_pending(self, catalog: Catalog, now: float) -> list[str]:
        """Write first reads and statistics to the catalog. Return the tenants of these statistics.

        Raises `CatalogUnavailable`.
        """
        await self._reads.write(catalog, self._first_read)
        return await self._sums.write(catalog, now)

    def _first_read(self, entry: Entry, at: float) -> None:
        tenant, tool = self._tool(entry.tenant, entry.tool)
        self._add(entry.tenant, d.CAPTURES_READ, tenant, tool)
        if at - entry.created <= AT_ONCE_SECONDS:
            self._add(entry.tenant, d.CAPTURES_READ_AT_ONCE, tenant, tool, _size_class(entry.size))
        self._of(d.FIRST_READ_DELAY, tenant).observe(max(0.0, at - entry.created))
        self._of(d.PREVIEWED_CAPTURES_READ, tenant, _preview(entry)).inc()
        self._cohorts.first_read(entry)

    def _add(self, tenant: str, metric: Metric, *labels: str, amount: int = 1) -> None:
        """Add to a metric that the catalog keeps."""
        self._of(metric, *labels).inc(amount)
        self._sums.add(tenant, metric.cell(labels), amount)

    def request(self, route: str, method: str, status: int, seconds: float, trace_id: str = "") -> None:
        """Count a request. `trace_id` becomes an exemplar of its time, unless it is empty."""
        found = self._answered.get((route, method, status))
        if found is None:
            label = method if method in METHODS else OTHER
            found = (
                self._of(d.HTTP_REQUESTS, route, label, str(status)),
                self._of(d.HTTP_REQUEST_SECONDS, route, label),
            )
            if label is method:
                self._answered[route, method, status] = found
        requests, times = found
        requests.inc()
        times.observe(seconds, {"trace_id": trace_id} if trace_id else None)

    def use(self, tenant: str, key: str, code: str, *, received: int, sent: int) -> None:
        """Count a request by its sender."""
        found = self._used.get((tenant, key, code))
        if found is None:
            owner = self._tenant(tenant), self._key(key)
            found = (
                self._of(d.TENANT_REQUESTS, *owner, code),
                self._of(d.TENANT_RECEIVED_BYTES, *owner),
                self._of(d.TENANT_SENT_BYTES, *owner),
            )
            if len(self._used) < MAX_KEYS:
                self._used[tenant, key, code] = found
        requests, received_bytes, sent_bytes = found
        requests.inc()
        if received:
            received_bytes.inc(received)
        if sent:
            sent_bytes.inc(sent)

    def stored(self, totals: Mapping[str, Totals]) -> None:
        """Set the stored amounts by tenant. Tenants beyond the bound are added up."""
        self._stored.set(
            {tenant: (each.captures, each.stored_size, each.size) for tenant, each in totals.items()}
        )

    def spooled(self, backlogs: Mapping[str, Backlog], now: float) -> None:
        """Set the backlogs of clients' spools by tenant. Of tenants beyond the bound, the worst is shown."""
        self._spooled.set(
            {
                tenant: (each.captures, each.size, max(0.0, now - each.oldest))
                for tenant, each in backlogs.items()
            }
        )

    def free_space(self, backend: str, free_bytes: int, free_inodes: int) -> None:
        """Set the free space of a disk."""
        self._of(d.FREE_BYTES, backend).set(free_bytes)
        self._of(d.FREE_INODES, backend).set(free_inodes)

    def clock_skew(self, seconds: float) -> None:
        """Set by how much this machine's clock differs from that of the back ends."""
        self._of(d.CLOCK_SKEW).set(seconds)

    def orphans(self, size: int) -> None:
        """Set the stored bytes that no capture needs."""
        self._of(d.ORPHAN_BYTES).set(size)

    def problem(self, code: str) -> None:
        self._of(d.PROBLEMS, code).inc()

    def sweep(self, removed: int, *, is_done: bool) -> None:
        self._of(d.SWEEPS, "done" if is_done else "failed").inc()
        self._of(d.SWEPT_CAPTURES).inc(removed)

    def damaged_record(self, *, is_repaired: bool) -> None:
        """Count a damaged record of the catalog, each time that a listing meets it."""
        self._of(d.CATALOG_DAMAGED_RECORDS, "mended" if is_repaired else "left").inc()

    def expect_operations(self, backend: str, names: Iterable[str]) -> None:
        """Show these operations of a back end before the first of them."""
        for name in names:
            self._series.expect(d.BACKEND_OPERATION_SECONDS, backend, name)
            for result in ("done", "failed"):
                self._series.expect(d.BACKEND_OPERATIONS, backend, name, result)

    def operation(self, backend: str, name: str, result: str, seconds: float) -> None:
        self._of(d.BACKEND_OPERATIONS, backend, name, result).inc()
        self._of(d.BACKEND_OPERATION_SECONDS, backend, name).observe(seconds)

    def measure_process(self) -> None:
        """Set the resources that this process uses, for scrapes that another worker answers."""
        self._process.measure()

    def collect(self) -> CollectorRegistry:
        """Return the registry of all workers' metrics."""
        self._process.measure()
        return self._series.registry

    def _tenant(self, tenant: str) -> str:
        """Return the label of a tenant. All its series are shown from then on."""
        label = self._tenants(tenant)
        if (label,) not in self._prepared:
            self._prepared.add((label,))
            self._series.prepare(tenant=label)
        return label

    def _tool(self, tenant: str, tool: str) -> tuple[str, str]:
        """Return the labels of a tenant's tool. All their series are shown from then on."""
        tenant = self._tenant(tenant)
        labels = tenant, self._tools(tenant, wire.fit(tool, wire.MAX_COUNTED_NAME))
        if labels not in self._prepared:
            self._prepared.add(labels)
            self._series.prepare(tenant=tenant, tool=labels[1])
        return labels


def _size_class(size: int) -> str:
    return next((str(bound) for bound in d.SIZE_CLASSES if size <= bound), "more")


def _waited(entry: Entry) -> float | None:
    """Return how many seconds the capture waited in a spool, or None if it was in none."""
    try:
        since = datetime.fromisoformat(entry.labels[wire.SPOOLED_LABEL])
    except (KeyError, ValueError):
        return None
    return max(0.0, entry.created - since.replace(tzinfo=since.tzinfo or UTC).timestamp())


def _preview(entry: Entry) -> str:
    kind = entry.labels.get(wire.PREVIEW_LABEL)
    return kind if kind in _PREVIEWS else "none"
