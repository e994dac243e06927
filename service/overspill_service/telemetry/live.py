"""The events of live captures that metrics count."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from overspill_service.telemetry import definitions as d
from overspill_service.telemetry.tenant_gauges import TenantGauges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from overspill_service.catalog.live import LiveTotals


class WaitEnd:
    """The reason why a wait ended: one of the label's values."""

    reason = "failed"


class LiveMetrics:
    def __init__(self, series: Callable[..., Any], label: Callable[[str], str]) -> None:
        """`series` returns the series of a metric, `label` the label of a tenant."""
        self._of, self._label = series, label
        self._totals = TenantGauges((d.LIVE_CAPTURES, d.LIVE_UNSTORED_BYTES), series, label)

    def append(self, tenant: str, size: int) -> None:
        """Count an append to a live capture."""
        label = self._label(tenant)
        self._of(d.LIVE_APPENDS, label).inc()
        self._of(d.LIVE_APPEND_BYTES, label).inc(size)

    def totals(self, totals: Mapping[str, LiveTotals], scheduled: int) -> None:
        """Set the numbers of live captures by tenant.

        Other scheduled captures are finished, and wait for compaction.
        """
        self._totals.set(totals)
        live = sum(each.captures for each in totals.values())
        self._of(d.UNCOMPACTED_CAPTURES).set(max(0, scheduled - live))

    def segment(self, tenant: str, *, is_done: bool) -> None:
        """Count an attempt to store a segment."""
        self._of(d.LIVE_SEGMENTS, self._label(tenant), "done" if is_done else "failed").inc()

    def durable(self, seconds: float) -> None:
        """Count how long the first byte of a segment had been accepted before it was durable."""
        self._of(d.LIVE_DURABLE_DELAY).observe(seconds)

    def vanished(self, tenant: str) -> None:
        """Count a capture that was ended because nothing was heard of its producer."""
        self._of(d.VANISHED_PRODUCERS, self._label(tenant)).inc()

    def follower(self) -> AbstractContextManager[None]:
        """Count a follower that is there for the time of the block."""
        counted: AbstractContextManager[None] = self._of(d.FOLLOWERS).track_inprogress()
        return counted

    @contextmanager
    def wait(self) -> Iterator[WaitEnd]:
        """Count a wait for the time of the block, and then why it ended, which the block notes."""
        end = WaitEnd()
        try:
            with self._of(d.WAITS).track_inprogress():
                yield end
        except asyncio.CancelledError:
            end.reason = "gone"
            raise
        finally:
            self._of(d.WAITS_ENDED, end.reason).inc()
