"""What is stored, how it grows, and about what it costs by a table of prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders.dashboard import TextBoxVariable
from overspill_service.telemetry import definitions as d

from dashboards import panels as p
from dashboards import queries as q
from dashboards.panels import Query, Step

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard
    from overspill_service.telemetry.metric import Metric

TENANT = 'tenant=~"$tenant"'
GIB = 2**30
MONTH_SECONDS = 2_628_000
"""A twelfth of 365 days."""
WRITES = 'backend="store", operation=~"put|copy|list"'
"""Requests of the dearer class of S3's price list."""
READS = 'backend="store", operation="read"'


def storage() -> Dashboard:
    page = p.page(
        "overspill-storage",
        "Overspill storage",
        "What is stored, how it grows, and about what it costs. The prices above are those of Amazon S3 "
        "Standard in us-east-1.",
        p.choice("tenant", "Tenant", f"label_values({d.STORED_BYTES.full_name}, tenant)"),
        TextBoxVariable("storage_price").label("$ per GiB and month").default_value("0.023"),
        TextBoxVariable("write_price").label("$ per 1,000 writes").default_value("0.005"),
        TextBoxVariable("read_price").label("$ per 1,000 reads").default_value("0.0004"),
    )
    return p.with_rows(page, {"Now": _now(), "Growth": _growth(), "Requests": _requests()})


def _stored(metric: Metric) -> str:
    return f"max by (tenant) ({q.selector(metric, TENANT)})"


def _monthly(matchers: str, price: str) -> str:
    requests = f"sum(rate({q.selector(d.BACKEND_OPERATIONS, matchers)}[$__range]))"
    return f"{requests} * {MONTH_SECONDS} / 1000 * {price}"


def _now() -> tuple[p.Panel, ...]:
    stored = f"sum({_stored(d.STORED_BYTES)})"
    return (
        p.number(
            "Stored bytes", "What all captures take in the object store.", p.BYTES, Query(stored, "stored")
        ),
        p.number(
            "Captures",
            "Captures that have not expired.",
            p.COUNT,
            Query(f"sum({_stored(d.STORED_CAPTURES)})", "captures"),
        ),
        p.number(
            "Stored share",
            "Bytes in the object store for each byte of content.",
            p.PERCENT,
            Query(q.ratio(stored, f"sum({_stored(d.STORED_CONTENT_BYTES)})"), "stored share"),
        ),
        p.number(
            "Storage a month",
            "What is stored now, at the price above.",
            p.DOLLARS,
            Query(f"{stored} / {GIB} * $storage_price", "storage"),
        ),
        p.number(
            "Requests a month",
            "Writes and reads at the rate of the dashboard's time. All tenants.",
            p.DOLLARS,
            Query(f"{_monthly(WRITES, '$write_price')} + {_monthly(READS, '$read_price')}", "requests"),
        ),
        p.number(
            "Orphans",
            "Stored bytes that no capture needs. Running uploads count too.",
            p.BYTES,
            Query(f"max({q.selector(d.ORPHAN_BYTES)})", "orphans"),
            Step(None, p.GREEN),
            Step(10 * GIB, p.AMBER),
        ),
    )


def _growth() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Stored bytes by tenant",
            "The ten tenants that store the most.",
            p.BYTES,
            Query(q.top(10, _stored(d.STORED_BYTES)), "{{tenant}}"),
            stacked=True,
        ),
        p.graph(
            "Captures by tenant",
            "The ten tenants with the most captures.",
            p.COUNT,
            Query(q.top(10, _stored(d.STORED_CAPTURES)), "{{tenant}}"),
            stacked=True,
        ),
        p.graph(
            "New bytes",
            "Content of new captures, and what it takes in the object store.",
            p.BYTES_PER_SECOND,
            Query(q.rate(d.CAPTURE_BYTES, TENANT), "content"),
            Query(q.rate(d.CAPTURE_STORED_BYTES, TENANT), "stored"),
        ),
        p.graph(
            "Free bytes",
            "Room on the disks of back ends in a data directory. Object stores do not tell.",
            p.BYTES,
            Query(q.selector(d.FREE_BYTES), "{{instance}} {{backend}}"),
        ),
        p.graph(
            "Free inodes",
            "Files that those disks can still take.",
            p.COUNT,
            Query(q.selector(d.FREE_INODES), "{{instance}} {{backend}}"),
        ),
    )


def _requests() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Requests to the object store",
            "Each is paid for, by its class.",
            p.REQUESTS_PER_SECOND,
            Query(q.rate(d.BACKEND_OPERATIONS, 'backend="store"', by="operation"), "{{operation}}"),
            stacked=True,
        ),
    )
