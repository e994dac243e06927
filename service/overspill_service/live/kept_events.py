"""Encoded events that the streams of one process keep for a while, for followers that are a little behind.

There may be thousands of streams. So what is kept is bounded for each, for each tenant and for all together;
the oldest events go first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overspill_service.live.events import Event

STREAM_BYTES: Final = 2**20
"""Bytes of encoded events that a stream keeps."""
TENANT_BYTES: Final = 8 * 2**20
ALL_BYTES: Final = 32 * 2**20

Events = dict[int, "Event"]
"""A stream's events by the offset at which each begins, in their order."""


class KeptEvents:
    def __init__(
        self, of_stream: int = STREAM_BYTES, of_tenant: int = TENANT_BYTES, of_all: int = ALL_BYTES
    ) -> None:
        self._of_stream, self._of_tenant, self._of_all = of_stream, of_tenant, of_all
        self._order: dict[str, OrderedDict[tuple[int, int], Events]] = {}
        """For each tenant, its kept events in the order in which they came."""
        self._sizes: Counter[str] = Counter()
        self._of_streams: Counter[int] = Counter()
        self.size = 0

    def add(self, tenant: str, events: Events, event: Event) -> None:
        """Keep one more of a stream's events. The newest of all is always kept."""
        events[event.offset] = event
        self._order.setdefault(tenant, OrderedDict())[id(events), event.offset] = events
        self._count(tenant, events, len(event.encoded))
        while self._of_streams[id(events)] > self._of_stream and len(events) > 1:
            self._drop(tenant, events, next(iter(events)))
        while self._sizes[tenant] > self._of_tenant and len(self._order[tenant]) > 1:
            self._drop_oldest(tenant)
        while self.size > self._of_all and self._sizes:
            self._drop_oldest(max(self._sizes, key=self._sizes.__getitem__))

    def forget(self, tenant: str, events: Events) -> None:
        """Drop all events of a stream."""
        for offset in [*events]:
            self._drop(tenant, events, offset)

    def _drop_oldest(self, tenant: str) -> None:
        (_, offset), events = next(iter(self._order[tenant].items()))
        self._drop(tenant, events, offset)

    def _drop(self, tenant: str, events: Events, offset: int) -> None:
        order = self._order[tenant]
        del order[id(events), offset]
        if not order:
            del self._order[tenant]
        self._count(tenant, events, -len(events.pop(offset).encoded))

    def _count(self, tenant: str, events: Events, size: int) -> None:
        self.size += size
        for counter, key in ((self._sizes, tenant), (self._of_streams, id(events))):
            counter[key] += size  # type: ignore[index]
            if not counter[key]:  # type: ignore[index]
                del counter[key]
