"""The entry with which a live capture begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.wire import State

from overspill_service.archive import retention
from overspill_service.catalog.records import Entry
from overspill_service.store_format import object_keys

if TYPE_CHECKING:
    from overspill_service.archive.metadata import CaptureMetadata
    from overspill_service.tenants.directory import Tenant


def new_entry(
    tenant: Tenant, capture: str, metadata: CaptureMetadata, producer: str, now: float, least_life: float
) -> Entry:
    """Return the entry of a capture that begins `now`, and lives for `least_life` seconds in any case.

    Raises `InvalidParameter` for its TTL.
    """
    requested = retention.expiry(now, metadata.ttl, tenant.limits)
    expires = max(requested, retention.end_of_life(now, least_life))
    return Entry(
        tenant=tenant.name,
        id=capture,
        upload=object_keys.new_upload(),
        state=State.LIVE,
        size=0,
        lines=0,
        sha256=b"",
        content_type=metadata.content_type,
        kind="unknown",
        tool=metadata.tool,
        session=metadata.session,
        call_id=metadata.call_id,
        status=metadata.status,
        labels=metadata.labels,
        created=round(now, 6),
        expires=expires,
        segments=[],
        producer=producer,
        life=expires - now,
    )
