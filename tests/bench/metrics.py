"""The cost of metrics in a request, and the effect of a flood of hostile names on them."""

from __future__ import annotations

import http.client
import re
import secrets
import tracemalloc
from timeit import timeit
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import urlopen

from overspill.transfer.sync import SyncClient
from overspill_service.telemetry.metrics import Metrics
from prometheus_client import generate_latest

from tests.bench import measuring, table
from tests.bench.table import Goal, Row
from tests.contracts.entries import entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

SHARE: Final = Goal(0.02)
SERIES: Final = Goal(60_000)
MEMORY: Final = Goal(96 * 2**20)
TENANTS: Final = 5
NOW: Final = 1_800_000_000.0
ENTRY: Final = entry()
_OPERATIONS: Final = re.compile(r'overspill_backend_operations_total\{[^}]*result="done"[^}]*\} (\S+)')


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    service, times = servers.embedded, scale.pick(3_000, 20)
    with SyncClient(service.url) as client:
        capture = client.put(b"x" * 1_024, call_id="read").id
    read = f"/v1/captures/{capture}/head"
    cpu, operations = _request_cost(service, lambda: ("GET", read, b""), times)
    share = _least(lambda metrics: _read(metrics, operations), scale) / cpu
    yield Row("metrics' share of the CPU of a read of 1 KB", share, SHARE, _percent, _detail(cpu, operations))
    cpu, operations = _request_cost(service, _upload, scale.pick(1_000, 20))
    share = _least(lambda metrics: _put(metrics, operations), scale) / cpu
    yield Row(
        "metrics' share of the CPU of an upload of 4 KB", share, SHARE, _percent, _detail(cpu, operations)
    )
    yield from _flooded(scale.pick(100_000, 200))


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _detail(cpu: float, operations: float) -> str:
    return f"{1e6 * cpu:.0f} µs a request, {operations:.1f} operations of back ends"


def _upload() -> tuple[str, str, bytes]:
    return "POST", "/v1/captures", secrets.token_bytes(4_096)


def _request_cost(
    service: ServiceProcess, request: Callable[[], tuple[str, str, bytes]], times: int
) -> tuple[float, float]:
    """Return the CPU seconds of the service for one request, and its operations of back ends."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)

    def send() -> None:
        for _ in range(times):
            method, path, body = request()
            connection.request(method, path, body)
            connection.getresponse().read()

    send()
    before = _operations(service)
    cost = measuring.cost(send, measuring.of_process(service.pid))
    after = _operations(service)
    connection.close()
    return cost.cpu / times, (after - before) / times


def _operations(service: ServiceProcess) -> float:
    with urlopen(f"{service.url}/metrics") as answer:
        return sum(map(float, _OPERATIONS.findall(answer.read().decode())))


def _least(work: Callable[[Metrics], None], scale: Scale) -> float:
    """Return the least seconds of one `work`, of several rounds, with series that exist already."""
    metrics, times = Metrics(), scale.pick(2_000, 10)
    work(metrics)
    return min(timeit(lambda: work(metrics), number=times) / times for _ in range(3 * scale.rounds))


def _read(metrics: Metrics, operations: float) -> None:
    metrics.read(ENTRY, "head", 1_024, NOW)
    _finish(metrics, "GET", "/v1/captures/{ref}/head", operations)


def _put(metrics: Metrics, operations: float) -> None:
    metrics.capture(ENTRY, is_new=True)
    _finish(metrics, "POST", "/v1/captures", operations)


def _finish(metrics: Metrics, method: str, route: str, operations: float) -> None:
    metrics.request(route, method, 200, 0.001)
    metrics.use("acme", "key", "", received=0, sent=1_024)
    for _ in range(round(operations)):
        metrics.operation("catalog", "get", "done", 0.0001)


def _flooded(names: int) -> Iterator[Row]:
    """Count outputs of ever new tools, of several tenants that all invent names."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    metrics = Metrics()
    for number in range(names):
        capture = entry(tenant=f"tenant {number % TENANTS}", tool=f"tool {number}")
        metrics.capture(capture, is_new=True)
    memory = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    series = sum(not line.startswith(b"#") for line in generate_latest(metrics.collect()).splitlines())
    what = f"{names} names of tools of {TENANTS} tenants:"
    yield Row(f"{what} series", series, SERIES, table.number)
    yield Row(f"{what} memory of the metrics", memory, MEMORY, table.mebibytes)
