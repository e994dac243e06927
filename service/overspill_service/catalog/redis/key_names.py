"""Every Redis key there is, with its type and lifetime.

All keys of a tenant have its name as hash tag, so they share one slot of a cluster and one script can change
several of them. An entry does not expire by itself, or the totals would drift: the sweep removes it. Tenant
names have no braces.

    ov1:{tenant}:capture:{id}       string  entry until it is removed, then tombstone, which expires
    ov1:{tenant}:readers:{id}       string  who has read it: see `catalog.readers`; goes with the entry
    ov1:{tenant}:created            zset    positions of all entries, ordered by their bytes (score 0)
    ov1:{tenant}:session:{digest}   zset    the same of one session; goes with its last entry
    ov1:{tenant}:call:{digest}      zset    the same of one call id; goes with its last entry
    ov1:{tenant}:tool:{digest}      zset    the same of one tool; goes with its last entry
    ov1:{tenant}:state:{state}      zset    the same of one state, except complete; goes with its last entry
    ov1:{tenant}:expiry             zset    id -> expires
    ov1:{tenant}:sizes              zset    id -> bytes of content
    ov1:{tenant}:totals             hash    captures, size, stored, metadata; where it is, the tenant is in
                                            ov1:tenants; complete: the complete state in which limits were
                                            held to it; readers: bytes of all readers
    ov1:{tenant}:reserved           hash    upload -> bytes of content, stored bytes, until when in ms, and
                                            captures, 1 if missing; expires with the last of them
    ov1:{tenant}:tombstones         zset    id -> when its tombstone expires, in ms; expires with the last
    ov1:{tenant}:live:{id}          hash    a live capture's `live.LiveRecord`, until it ends
    ov1:{tenant}:buffer:{id}        string  its accepted bytes that are not durable yet
    ov1:{tenant}:marks:{id}         string  its timeline
    ov1:{tenant}:buffered           string  bytes in all buffers of the tenant
    ov1:{tenant}:news:{id}          channel a + 8 bytes offset + bytes of an append; s: look again
    ov1:live                        zset    tenant/id -> when to look at a live capture next
    ov1:stats:{tenant}:{length}:{start}  hash  sums of one bucket: see `catalog.statistics`; expires
    ov1:stats:{tenant}:{length}:sizes    hash    start -> bytes of this bucket, `all` -> of all; expires
    ov1:stats:{tenant}:rollups           hash    name -> what was computed from past buckets; expires
    ov1:backlogs                         set     tenants with backlogs
    ov1:backlogs:{tenant}                hash    spool -> captures, bytes, oldest, and until when
    ov1:stats:{tenant}:batches           zset    batch -> when it came, in µs, and with the last digits at
                                                 random, so that its adder knows it; expires with the last.
                                                 Both also with *tenant, for the sums of its experiments
    ov1:tenants                     set     for ever
    ov1:keys                        hash    key hash -> record, until revoked
    ov1:uses                        hash    key hash -> the hash, and its last use; until revoked
    ov1:access                      string  a `key_records.AccessMode`, for ever
    ov1:complete                    string  a `completeness.Mark` of what is complete, for ever
    ov1:rebuild                     string  one of the rebuild that began last, for ever
    ov1:epoch                       string  a random word, another one once a loss was noticed; for ever,
                                            unless it is evicted: then what else is left is not trusted
    ov1:lease:{name}                string  the holder; expires with the lease
    ov1:once:{name}                 string  who was first; expires
    ov1:figures:{name}              hash    holder -> a replica's figure, and until when in ms; expires
    ov1:ping                        never   deleted by probes, to learn whether writes are accepted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service.catalog import encoding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overspill_service.catalog.records import Entry, Query

TENANTS: Final = "ov1:tenants"
KEYS: Final = "ov1:keys"
USES: Final = "ov1:uses"
ACCESS: Final = "ov1:access"
COMPLETE: Final = "ov1:complete"
REBUILD: Final = "ov1:rebuild"
EPOCH: Final = "ov1:epoch"
OF_TENANTS: Final = "ov1:{*"
"""The pattern of all keys of tenants."""
LIVE: Final = "ov1:live"
PING: Final = "ov1:ping"


def capture(tenant: str, capture_id: str) -> str:
    return f"ov1:{{{tenant}}}:capture:{capture_id}"


def readers(tenant: str, capture_id: str) -> str:
    return f"ov1:{{{tenant}}}:readers:{capture_id}"


def created(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:created"


def session(tenant: str, session: str) -> str:
    return f"ov1:{{{tenant}}}:session:{encoding.digest(session).hex()}"


def call(tenant: str, call_id: str) -> str:
    return f"ov1:{{{tenant}}}:call:{encoding.digest(call_id).hex()}"


def tool(tenant: str, tool: str) -> str:
    return f"ov1:{{{tenant}}}:tool:{encoding.digest(tool).hex()}"


def state(tenant: str, state: wire.State) -> str:
    return f"ov1:{{{tenant}}}:state:{state.value}"


def expiry(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:expiry"


def sizes(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:sizes"


def totals(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:totals"


def reserved(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:reserved"


def tombstones(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:tombstones"


def of_live(tenant: str, capture_id: str) -> list[str]:
    """Return the keys of a live capture: live, buffer, marks, buffered."""
    each = [f"ov1:{{{tenant}}}:{kind}:{capture_id}" for kind in ("live", "buffer", "marks")]
    return [*each, buffered(tenant)]


def buffered(tenant: str) -> str:
    return f"ov1:{{{tenant}}}:buffered"


def news(tenant: str, capture_id: str) -> str:
    return f"ov1:{{{tenant}}}:news:{capture_id}"


def statistics(tenant: str, seconds: int | str, start: int | str) -> str:
    return f"ov1:stats:{{{tenant}}}:{seconds}:{start}"


def statistics_sizes(tenant: str, seconds: int) -> str:
    return f"ov1:stats:{{{tenant}}}:{seconds}:sizes"


def batches(tenant: str) -> str:
    return f"ov1:stats:{{{tenant}}}:batches"


def rollups(tenant: str) -> str:
    return f"ov1:stats:{{{tenant}}}:rollups"


BACKLOGS: Final = "ov1:backlogs"


def backlogs(tenant: str) -> str:
    return f"ov1:backlogs:{{{tenant}}}"


def tenants(members: Iterable[bytes]) -> list[str]:
    """Return the tenants that a set has, without damaged members."""
    names = (member.decode(errors="replace") for member in members)
    return [name for name in names if "\N{REPLACEMENT CHARACTER}" not in name]


def lease(name: str) -> str:
    return f"ov1:lease:{name}"


def once(name: str) -> str:
    return f"ov1:once:{name}"


def figures(name: str) -> str:
    """Return the key of what replicas tell each other under a name."""
    return f"ov1:figures:{name}"


def of_entry(entry: Entry) -> list[str]:
    """Return the keys of one entry.

    Capture, expiry, totals, reserved, tombstones, sizes, readers, then indexes.
    """
    tenant = entry.tenant
    shared = expiry(tenant), totals(tenant), reserved(tenant), tombstones(tenant), sizes(tenant)
    return [capture(tenant, entry.id), *shared, readers(tenant, entry.id), *indexes(tenant, entry)]


def indexes(tenant: str, of: Entry | Query) -> list[str]:
    """Return the indexes that an entry is in, or that hold everything a query selects.

    Empty texts and the state `complete` have no index: nearly every entry has them.
    """
    keys = [created(tenant)]
    if of.session:
        keys.append(session(tenant, of.session))
    if of.call_id:
        keys.append(call(tenant, of.call_id))
    if of.tool:
        keys.append(tool(tenant, of.tool))
    if of.state not in (None, wire.State.COMPLETE):
        keys.append(state(tenant, of.state))
    return keys
