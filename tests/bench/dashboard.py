"""The dashboard of the web page: what 30 days of 1,000 tools cost the service, beside one entry."""

from __future__ import annotations

import asyncio
import http.client
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from overspill import SyncClient, wire
from overspill_service.catalog.statistics import DAYS, Cell
from overspill_service.catalog.urls import open_catalog
from overspill_service.web.history import MONTH, rollup_name

from tests.bench import measuring
from tests.bench.measuring import Cost
from tests.bench.table import Goal, Row
from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill_service.catalog import Catalog

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers
    from tests.servers.overspill import ServiceProcess

DAYS_SHOWN: Final = 30
TOOLS: Final = 1_000
FIGURES: Final = (
    ("tool_outputs", "captured", 5),
    ("tool_output_bytes", "captured", 500_000),
    ("tool_output_kept_bytes", "captured", 10_000),
    ("captures", "created", 5),
)
"""As many of each tool as a bucket has room for."""


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    for kind, url in (("SQLite", "sqlite:"), ("Redis", servers.catalog())):
        service = servers.service(catalog=url)
        asyncio.run(_fill(open_catalog(url, data_dir=service.data), scale.pick(TOOLS, 10)))
        with SyncClient(service.url) as client:
            capture = client.put(b"x" * 1_024, call_id="entry").id
        asyncio.run(_until_prepared(open_catalog(url, data_dir=service.data)))
        yield from _rows(service, capture, kind, scale)


def _rows(service: ServiceProcess, capture: str, kind: str, scale: Scale) -> Iterator[Row]:
    first = _cost(service, _asked(), 1)
    entry = partial(_cost, service, [wire.Path.CAPTURE.format(ref=capture)], scale.pick(200, 5))
    dashboard = partial(_cost, service, _asked(), scale.pick(20, 1))
    found = measuring.compared(scale.rounds, dashboard, entry).cpu
    what = f"a dashboard of {DAYS_SHOWN} days of {TOOLS} tools on {kind}: CPU, of that for an entry"
    yield Row(
        what,
        found,
        Goal(10.0),
        detail=f"{first.against(entry()).cpu:.0f} times, as the first one of a process",
    )


async def _until_prepared(catalog: Catalog) -> None:
    """Wait for the roll-up of 30 days that a service makes of its own accord, once a day and tenant."""
    await until(lambda: catalog.rollup("default", rollup_name(DAYS, MONTH)))
    await catalog.close()


async def _fill(catalog: Catalog, tools: int) -> None:
    now = time.time()
    for day in range(DAYS_SHOWN):
        sums = {
            Cell(figure, f"tool-{tool}", outcome): amount * (1 + tool % 7)
            for tool in range(tools)
            for figure, outcome, amount in FIGURES
        }
        at = now - day * DAYS.seconds
        await catalog.add_sums("default", sums, now=at, batch=f"day-{day}", memory=60)
    await catalog.close()


def _asked() -> list[str]:
    """What the page asks for."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    since = (now - timedelta(days=DAYS_SHOWN)).isoformat()
    return [f"{wire.Path.OVERVIEW}?{urlencode({'since': since})}"]


def _cost(service: ServiceProcess, paths: list[str], times: int) -> Cost:
    """Return what the service spends on all these requests."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)

    def send() -> None:
        for _ in range(times):
            for path in paths:
                connection.request("GET", path)
                answer = connection.getresponse()
                assert answer.read(), path
                assert answer.status == 200, path

    spent = measuring.cost(send, measuring.of_process(service.pid))
    connection.close()
    return Cost(spent.cpu / times, spent.wall / times)
