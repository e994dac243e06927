"""The cost of traces: without a tracer provider, and with one."""

from __future__ import annotations

import http.client
import os
from timeit import timeit
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from overspill.execution import tracing
from overspill.guard.guard import Guard
from overspill_service.web import request_span
from overspill_service.web.exchange import Exchange
from overspill_service.web.middleware import span_of

from tests.bench import measuring, table, texts
from tests.bench.servers import Unavailable
from tests.bench.table import Goal, Row
from tests.servers.otlp import collecting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.measuring import Cost
    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

PROVIDER: Final = "opentelemetry.trace._TRACER_PROVIDER"
SHORT: Final = "a line of the build\n" * 50
LONG: Final = 500_000


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    try:
        from tests.servers.tracing import Tracing  # noqa: PLC0415  (an optional library)

        provider = Tracing().provider
    except ImportError as error:
        raise Unavailable(str(error)) from error
    guard, text = Guard(spool=False), texts.text(texts.LOG, LONG).decode()
    yield from _outputs(guard, provider, text, scale)
    yield from _requests(servers, scale)


def _outputs(guard: Guard, provider: object, text: str, scale: Scale) -> Iterator[Row]:
    def work(output: str, times: int, tracer_provider: object) -> Callable[[], Cost]:
        def run() -> Cost:
            with mock.patch(PROVIDER, tracer_provider):
                return measuring.cost(lambda: _guarded(guard, output, times), measuring.own)

        return run

    short, long = scale.pick(50_000, 500), scale.pick(20, 1)
    ratio = measuring.compared(4 * scale.rounds, work(SHORT, short, provider), work(SHORT, short, None)).cpu
    yield Row("a short output with a provider: CPU over one without", ratio, Goal(1.02), table.fine_ratio)
    ratio = measuring.compared(2 * scale.rounds, work(text, long, provider), work(text, long, None)).cpu
    yield Row("500 KB spilled with a provider: CPU over one without", ratio, Goal(1.05), table.fine_ratio)
    steps = _least(_asked_for_a_spill, scale)
    spill = work(text, long, None)().cpu / long
    yield Row(
        "without a provider: the share of a spill's CPU that asks for one",
        *(steps / spill, Goal(1 / 1_000), table.fraction, table.microseconds(steps)),
    )


def _guarded(guard: Guard, output: str, times: int) -> None:
    for _ in range(times):
        guard.process_sync(output, tool="build")


def _asked_for_a_spill() -> None:
    tracing.is_on()


def _requests(servers: Servers, scale: Scale) -> Iterator[Row]:
    times = scale.pick(2_000, 50)
    with collecting() as collector:
        plain = servers.service()
        with mock.patch.dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url):
            traced = servers.service()
        asked: list[Callable[[], Cost]] = [
            lambda service=service: measuring.cost(  # type: ignore[misc]
                lambda: _ask(service, times), measuring.of_process(service.pid)
            )
            for service in (traced, plain)
        ]
        ratio = measuring.compared(scale.rounds, *asked).cpu
        yield Row("a request traced and exported: CPU over one that is not", ratio, Goal(1.5))
        request = asked[1]().cpu / times
        traced.stop()
    steps = _least(_asked_for_a_request, scale)
    yield Row(
        "without a provider: the share of a request's CPU that asks for one",
        *(steps / request, Goal(1 / 100), table.fraction, table.microseconds(steps)),
    )


def _ask(service: ServiceProcess, times: int) -> None:
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"))
    for _ in range(times):
        connection.request("GET", "/v1/usage")
        assert connection.getresponse().read()
    connection.close()


_SERVICE: Final[Any] = SimpleNamespace(spans=None)
_REQUEST: Final[Any] = None
_EXCHANGE: Final = Exchange(_SERVICE, "", "/v1/usage", "")


def _asked_for_a_request() -> None:
    with span_of(_REQUEST, _EXCHANGE):
        pass
    request_span.end(_EXCHANGE, 200, received=0, sent=100)


def _least(work: Callable[[], object], scale: Scale) -> float:
    """Seconds of one call, the least of many rounds."""
    times = scale.pick(20_000, 100)
    return min(timeit(work, number=times) / times for _ in range(4 * scale.rounds))
