"""One tenant: what its agents do, what it stores, and who asks with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.telemetry import definitions as d

from dashboards import panels as p
from dashboards import queries as q
from dashboards.fleet import kept_out
from dashboards.panels import Query, Step

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

TENANT = 'tenant="$tenant"'
BUFFER_FULL = 'code="buffer_full"'


def tenant() -> Dashboard:
    page = p.page(
        "overspill-tenant",
        "Overspill tenant",
        "What one tenant's agents keep out of conversations, what it stores, and who asks with which key.",
        p.choice("tenant", "Tenant", f"label_values({d.TENANT_REQUESTS.full_name}, tenant)", is_multi=False),
    )
    rows = {
        "Outputs": _outputs(),
        "Captures": _stored() + _captures(),
        "Live captures": _live() + _appends(),
        "Spools": _spools(),
        "Keys": _keys(),
    }
    return p.with_rows(page, rows)


def _outputs() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Truncation rate by tool",
            "Share of a tool's outputs that did not enter the conversation whole.",
            p.PERCENT,
            Query(
                q.ratio(
                    q.rate(d.TOOL_OUTPUTS, TENANT, q.SPILLED, by="tool"),
                    q.rate(d.TOOL_OUTPUTS, TENANT, by="tool"),
                ),
                "{{tool}}",
            ),
            most=1,
        ),
        p.graph(
            "Bytes kept out by tool",
            "Bytes of outputs less those of what stands in their place.",
            p.BYTES_PER_SECOND,
            Query(f"({kept_out('tool', TENANT)})", "{{tool}}"),
            stacked=True,
        ),
    )


def _stored() -> tuple[p.Panel, ...]:
    return (
        p.number(
            "Stored captures",
            "Captures that have not expired.",
            p.COUNT,
            Query(f"max({q.selector(d.STORED_CAPTURES, TENANT)})", "captures"),
        ),
        p.number(
            "Stored bytes",
            "What they take in the object store.",
            p.BYTES,
            Query(f"max({q.selector(d.STORED_BYTES, TENANT)})", "stored"),
        ),
        p.number(
            "Uploads refused",
            "Uploads over a limit of the tenant, in the dashboard's time.",
            p.COUNT,
            Query(
                q.total(
                    d.TENANT_REQUESTS, TENANT, 'code=~"quota_exceeded|capture_too_large|too_many_requests"'
                ),
                "refused",
            ),
            Step(None, p.GREEN),
            Step(1, p.AMBER),
        ),
    )


def _live() -> tuple[p.Panel, ...]:
    return (
        p.number(
            "Live now",
            "Captures that grow.",
            p.COUNT,
            Query(f"max({q.selector(d.LIVE_CAPTURES, TENANT)})", "live"),
            width=6,
        ),
        p.number(
            "Not durable",
            "Accepted bytes that the catalog has alone. At most 256 MiB.",
            p.BYTES,
            Query(f"max({q.selector(d.LIVE_UNSTORED_BYTES, TENANT)})", "bytes"),
            width=6,
        ),
        p.number(
            "Producers that vanished",
            "Captures that became partial, in the dashboard's time.",
            p.COUNT,
            Query(q.total(d.VANISHED_PRODUCERS, TENANT), "vanished"),
            Step(None, p.GREEN),
            Step(1, p.AMBER),
            width=6,
        ),
        p.number(
            "Appends refused",
            "As much is accepted as may wait for the object store (buffer_full), in the dashboard's time.",
            p.COUNT,
            Query(f"({q.total(d.TENANT_REQUESTS, TENANT, BUFFER_FULL)}) or vector(0)", "refused"),
            Step(None, p.GREEN),
            Step(1, p.AMBER),
            width=6,
        ),
    )


def _appends() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Appends",
            "Appends to live captures, and segments that they became.",
            p.PER_SECOND,
            Query(q.rate(d.LIVE_APPENDS, TENANT), "appends"),
            Query(q.rate(d.LIVE_SEGMENTS, TENANT, by="result"), "segments {{result}}"),
        ),
        p.graph(
            "Bytes appended",
            "Bytes of content that they added.",
            p.BYTES_PER_SECOND,
            Query(q.rate(d.LIVE_APPEND_BYTES, TENANT), "bytes"),
        ),
    )


def _captures() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Captures by result",
            "Created: new. Repeated: the same capture was sent again, which costs nothing.",
            p.PER_SECOND,
            Query(q.rate(d.CAPTURES, TENANT, by="result"), "{{result}}"),
        ),
        p.graph(
            "Reads by mode",
            "How captures are read back.",
            p.PER_SECOND,
            Query(q.rate(d.READS, TENANT, by="mode"), "{{mode}}"),
            stacked=True,
        ),
        p.graph(
            "Bytes read by mode",
            "Bytes of answers to reads.",
            p.BYTES_PER_SECOND,
            Query(q.rate(d.READ_BYTES, TENANT, by="mode"), "{{mode}}"),
            stacked=True,
        ),
        p.heat(
            "Sizes of new captures",
            "Bytes of content of new captures.",
            p.BYTES,
            Query(q.rate(d.CAPTURE_SIZE, TENANT, by="le", suffix="_bucket"), "{{le}}"),
        ),
    )


def _spools() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Captures that wait in spools",
            "On the agents' machines, by their last reports.",
            p.COUNT,
            Query(f"max({q.selector(d.SPOOLED_CAPTURES, TENANT)})", "captures"),
            width=8,
        ),
        p.graph(
            "Bytes that wait in spools",
            "Content, before it is compressed.",
            p.BYTES,
            Query(f"max({q.selector(d.SPOOLED_BYTES, TENANT)})", "bytes"),
            width=8,
        ),
        p.graph(
            "Age of the oldest",
            "If it grows, uploads are refused: the agents reach the service, or they would not report.",
            p.SECONDS,
            Query(f"max({q.selector(d.SPOOLED_AGE, TENANT)})", "oldest"),
            width=8,
        ),
        p.graph(
            "Uploads from spools",
            "New captures that waited before they were uploaded.",
            p.PER_SECOND,
            Query(q.rate(d.SPOOL_UPLOADS, TENANT), "uploads"),
        ),
        p.heat(
            "How long they waited",
            "From the spool to the end of the upload.",
            p.SECONDS,
            Query(q.rate(d.SPOOL_WAIT, TENANT, by="le", suffix="_bucket"), "{{le}}"),
        ),
    )


def _keys() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Requests by key",
            "Requests with each key. The key's id is what `overspill-service keys list` shows.",
            p.REQUESTS_PER_SECOND,
            Query(q.rate(d.TENANT_REQUESTS, TENANT, by="key"), "{{key}}"),
            width=8,
        ),
        p.graph(
            "Problems by key and code",
            "Requests that were answered with a problem.",
            p.REQUESTS_PER_SECOND,
            Query(q.rate(d.TENANT_REQUESTS, TENANT, 'code!=""', by="key, code"), "{{key}}: {{code}}"),
            width=8,
        ),
        p.graph(
            "Traffic",
            "Bytes of the bodies of requests and of answers.",
            p.BYTES_PER_SECOND,
            Query(q.rate(d.TENANT_RECEIVED_BYTES, TENANT), "received"),
            Query(q.rate(d.TENANT_SENT_BYTES, TENANT), "sent"),
            width=8,
        ),
    )
