"""The health of the service: rate, errors and duration of requests and back ends, and the processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.telemetry import definitions as d

from dashboards import panels as p
from dashboards import queries as q
from dashboards.panels import Query, Step

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

ON = 'instance=~"$instance"'
FAILED = 'status=~"5.."'
RESULT_FAILED = 'result="failed"'
_JOB = f'job="overspill", {ON}'


def health() -> Dashboard:
    page = p.page(
        "overspill-health",
        "Overspill service",
        "Rate, errors and duration of requests and back ends, and what the processes use.",
        p.choice("instance", "Replica", f"label_values({d.BUILD_INFO.full_name}, instance)"),
    )
    groups = {
        "Now": _requests_now() + _state_now(),
        "Requests": _requests(),
        "Live captures": _growing() + _watched(),
        "Back ends": _back_ends() + _upkeep(),
        "Processes": _processes() + _starts(),
    }
    return p.with_rows(page, groups)


def _requests_now() -> tuple[p.Panel, ...]:
    requests, errors = q.rate(d.HTTP_REQUESTS, ON), q.rate(d.HTTP_REQUESTS, ON, FAILED)
    return (
        p.number(
            "Replicas",
            "Replicas that answer Prometheus.",
            p.COUNT,
            Query(f"sum(min by (instance) ({q.selector(d.BUILD_INFO, ON)}))", "replicas"),
        ),
        p.number("Requests", "Requests per second.", p.REQUESTS_PER_SECOND, Query(requests, "requests")),
        p.number(
            "Errors",
            "Share of requests that fail (5xx). The objective is 0.1 %.",
            p.PERCENT,
            Query(f"({q.ratio(errors, requests)}) or vector(0)", "errors"),
            Step(None, p.GREEN),
            Step(0.001, p.AMBER),
            Step(0.01, p.RED),
        ),
        p.number(
            "Reads, 99 %",
            "Time in which 99 % of bounded reads are answered. The objective is 0.5 s.",
            p.SECONDS,
            Query(q.quantile(0.99, d.HTTP_REQUEST_SECONDS, ON, q.READS), "99 %"),
            Step(None, p.GREEN),
            Step(0.5, p.AMBER),
            Step(2, p.RED),
        ),
    )


def _state_now() -> tuple[p.Panel, ...]:
    return (
        p.number(
            "Uploads in progress",
            "Uploads that the replicas are receiving.",
            p.COUNT,
            Query(f"sum({q.selector(d.UPLOADS_IN_PROGRESS, ON)})", "uploads"),
        ),
        p.number(
            "Live captures",
            "Captures that grow, of all replicas.",
            p.COUNT,
            Query(f"sum(max by (tenant) ({q.selector(d.LIVE_CAPTURES, ON)}))", "live"),
        ),
        p.number(
            "Clock skew",
            "By how much the worst clock differs from the back ends'.",
            p.SECONDS,
            Query(f"max({q.selector(d.CLOCK_SKEW, ON)})", "skew"),
            Step(None, p.GREEN),
            Step(5, p.AMBER),
            Step(10, p.RED),
        ),
    )


def _requests() -> tuple[p.Panel, ...]:
    by = "method, route"
    return (
        p.graph(
            "Rate",
            "Requests by route.",
            p.REQUESTS_PER_SECOND,
            Query(q.rate(d.HTTP_REQUESTS, ON, by=by), "{{method}} {{route}}"),
            width=8,
            stacked=True,
        ),
        p.graph(
            "Errors",
            "Requests that fail (5xx), by route and status.",
            p.REQUESTS_PER_SECOND,
            Query(q.rate(d.HTTP_REQUESTS, ON, FAILED, by=f"{by}, status"), "{{method}} {{route}} {{status}}"),
            width=8,
        ),
        p.graph(
            "Duration, 99 %",
            "Time in which 99 % of a route's requests are answered.",
            p.SECONDS,
            Query(q.quantile(0.99, d.HTTP_REQUEST_SECONDS, ON, by=by), "{{method}} {{route}}"),
            width=8,
        ),
        p.graph(
            "Problems by code",
            "Answers that were no success, by their stable code.",
            p.REQUESTS_PER_SECOND,
            Query(f"{q.rate(d.PROBLEMS, ON, by='code')} > 0", "{{code}}"),
            stacked=True,
        ),
        p.heat(
            "Duration of bounded reads",
            "How long head, tail, lines, grep and summary take.",
            p.SECONDS,
            Query(q.rate(d.HTTP_REQUEST_SECONDS, ON, q.READS, by="le", suffix="_bucket"), "{{le}}"),
        ),
    )


def _growing() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Bytes that are not durable",
            "Accepted bytes that the catalog has alone, of the ten tenants with the most.",
            p.BYTES,
            Query(q.top(10, f"max by (tenant) ({q.selector(d.LIVE_UNSTORED_BYTES, ON)})"), "{{tenant}}"),
            width=8,
        ),
        p.graph(
            "Delay until they are durable",
            "From the acceptance of a segment's first byte until it was stored.",
            p.SECONDS,
            Query(q.quantile(0.5, d.LIVE_DURABLE_DELAY, ON), "50 %"),
            Query(q.quantile(0.99, d.LIVE_DURABLE_DELAY, ON), "99 %"),
            width=8,
        ),
        p.graph(
            "Segments",
            "Segments of live captures by result. What failed is tried again.",
            p.PER_SECOND,
            Query(q.rate(d.LIVE_SEGMENTS, ON, by="result"), "{{result}}"),
            width=8,
        ),
    )


def _watched() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Followers and waits",
            "Clients that follow captures or wait for something in one.",
            p.COUNT,
            Query(f"sum({q.selector(d.FOLLOWERS, ON)})", "followers"),
            Query(f"sum({q.selector(d.WAITS, ON)})", "waits"),
            width=8,
        ),
        p.graph(
            "Waits by why they ended",
            "Many timeouts: agents wait for what does not come. Gone: the client hung up.",
            p.PER_SECOND,
            Query(q.rate(d.WAITS_ENDED, ON, by="reason"), "{{reason}}"),
            width=8,
            stacked=True,
        ),
        p.graph(
            "Vanished producers and compaction",
            "Captures that became partial in the last hour, and finished ones of many objects.",
            p.COUNT,
            Query(f"sum(increase({q.selector(d.VANISHED_PRODUCERS, ON)}[1h]))", "vanished"),
            Query(f"max({q.selector(d.UNCOMPACTED_CAPTURES, ON)})", "to be compacted"),
            width=8,
        ),
    )


def _back_ends() -> tuple[p.Panel, ...]:
    by = "backend, operation"
    return (
        p.graph(
            "Rate",
            "Operations of the object store and the catalog.",
            p.PER_SECOND,
            Query(f"{q.rate(d.BACKEND_OPERATIONS, ON, by=by)} > 0", "{{backend}} {{operation}}"),
            width=8,
        ),
        p.graph(
            "Errors",
            "Operations that failed.",
            p.PER_SECOND,
            Query(
                q.top(10, q.rate(d.BACKEND_OPERATIONS, ON, RESULT_FAILED, by=by)),
                "{{backend}} {{operation}}",
            ),
            width=8,
        ),
        p.graph(
            "Duration, 99 %",
            "Time in which 99 % of an operation's calls end.",
            p.SECONDS,
            Query(q.quantile(0.99, d.BACKEND_OPERATION_SECONDS, ON, by=by), "{{backend}} {{operation}}"),
            width=8,
        ),
    )


def _upkeep() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Damaged records",
            "Records of the catalog that cannot be decoded, by what became of them.",
            p.PER_SECOND,
            Query(q.rate(d.CATALOG_DAMAGED_RECORDS, ON, by="result"), "{{result}}"),
        ),
        p.graph(
            "Sweeps",
            "Rounds that remove expired captures, and the captures that they removed.",
            p.PER_SECOND,
            Query(q.rate(d.SWEEPS, ON, by="result"), "sweeps {{result}}"),
            Query(q.rate(d.SWEPT_CAPTURES, ON), "captures removed"),
        ),
    )


def _processes() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "CPU",
            "Cores in use by replica.",
            p.COUNT,
            Query(q.rate(d.PROCESS_CPU, _JOB, by="instance"), "{{instance}}"),
            width=8,
        ),
        p.graph(
            "Memory",
            "Resident memory by replica, all its workers together.",
            p.BYTES,
            Query(q.selector(d.PROCESS_MEMORY, _JOB), "{{instance}}"),
            width=8,
        ),
        p.graph(
            "Open files",
            "Open descriptors by replica, of those that may be open.",
            p.PERCENT,
            Query(
                q.ratio(q.selector(d.PROCESS_OPEN_FDS, _JOB), q.selector(d.PROCESS_MAX_FDS, _JOB)),
                "{{instance}}",
            ),
            width=8,
            most=1,
        ),
    )


def _starts() -> tuple[p.Panel, ...]:
    return (
        p.graph(
            "Time since the last start",
            "A drop is a restart.",
            p.SECONDS,
            Query(f"time() - {q.selector(d.PROCESS_START_TIME, _JOB)}", "{{instance}}"),
        ),
        p.graph(
            "Versions",
            "Replicas by version of the service and of Python.",
            p.COUNT,
            Query(
                f"sum by (version, python) ({q.selector(d.BUILD_INFO, ON)})", "{{version}}, Python {{python}}"
            ),
            stacked=True,
        ),
    )
