"""Every Redis key there is, with its type and lifetime.

All keys of a tenant carry its name as hash tag, so that they share one slot of a cluster and one script
can change several of them. Nothing of a capture expires by itself, or the totals would drift: the sweep
removes it. Tenant names have no braces.

    ov1:{tenant}:capture:{id}       string  entry until it is removed, then tombstone, which expires
    ov1:{tenant}:created            zset    positions of all entries, ordered by their bytes (score 0)
    ov1:{tenant}:session:{digest}   zset    the same of one session; goes with its last entry
    ov1:{tenant}:call:{digest}      zset    the same of one call id; goes with its last entry
    ov1:{tenant}:expiry             zset    id -> expires
    ov1:{tenant}:totals             hash    captures, size, stored; where it is, the tenant is in ov1:tenants
    ov1:tenants                     set     for ever
    ov1:keys                        hash    key hash -> record, until revoked
    ov1:complete                    string  the servers that were complete, for ever
    ov1:lease:{name}                string  the holder; expires with the lease
    ov1:once:{name}                 string  who was first; expires
    ov1:ping                        string  expires after PING_LIFE
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill_service.catalog import records

if TYPE_CHECKING:
    from overspill_service.catalog import Entry, Query

TENANTS: Final = "ov1:tenants"
KEYS: Final = "ov1:keys"
COMPLETE: Final = "ov1:complete"
PING: Final = "ov1:ping"
PING_LIFE: Final = 1000
"""Milliseconds."""


def capture(tenant: str, capture_id: str) -> str:
    return f"ov1:{{{tenant}}}:capture:{capture_id}"


def created(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:created"


def session(tenant: str, session: str) -> str:
    return f"ov1:{{{tenant}}}:session:{records.digest(session).hex()}"


def call(tenant: str, call_id: str) -> str:
    return f"ov1:{{{tenant}}}:call:{records.digest(call_id).hex()}"


def expiry(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:expiry"


def totals(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:totals"


def lease(name: str) -> str:
    return f"ov1:lease:{name}"


def once(name: str) -> str:
    return f"ov1:once:{name}"


def of_entry(entry: Entry) -> list[str]:
    """The keys that one entry lives in: the capture, expiry, totals, then every index of positions.

    An empty session or call id names nothing, so it has no index.
    """
    tenant = entry.tenant
    keys = [capture(tenant, entry.id), expiry(tenant), totals(tenant), created(tenant)]
    if entry.session:
        keys.append(session(tenant, entry.session))
    if entry.call_id:
        keys.append(call(tenant, entry.call_id))
    return keys


def index(tenant: str, query: Query) -> str:
    """The most selective index that holds everything the query selects."""
    if query.call_id:
        return call(tenant, query.call_id)
    if query.session:
        return session(tenant, query.session)
    return created(tenant)
