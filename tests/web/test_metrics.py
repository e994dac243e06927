"""The metrics at /metrics: their formats, their names, and what bounds them."""

from __future__ import annotations

import asyncio
import secrets
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from overspill import wire
from overspill.wire import MAX_COUNTED_NAME, Observation, Observations, Outcome, SpoolBacklog, fit
from overspill_service.catalog import Catalog
from overspill_service.catalog.quotas import Totals
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.statistics import OTHER
from overspill_service.maintenance import Maintenance
from overspill_service.telemetry.definitions import METRICS
from overspill_service.telemetry.metric import Kind
from overspill_service.telemetry.metrics import Metrics
from overspill_service.telemetry.names import BoundedNames, ToolNames
from overspill_service.telemetry.scrapes import PLAIN, Scrapes
from prometheus_client import CollectorRegistry, Gauge, generate_latest, parser
from prometheus_client.openmetrics import parser as openmetrics_parser

if TYPE_CHECKING:
    from tests.web.conftest import Api

NOW = 1_800_000_000.0
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def observed(tool: str, count: int = 1, outcome: Outcome = Outcome.CAPTURED) -> Observation:
    return Observation(tool=tool, outcome=outcome, count=count, bytes_before=1000, bytes_after=10)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels' values, in the order of the labels' names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


async def count(metrics: Metrics, tenant: str, *seen: Observation) -> bool:
    """Count one batch, with a catalog that has nothing else."""
    batch = Observations(batch=secrets.token_hex(8), observations=list(seen))
    return await metrics.observe(SqliteCatalog(None), tenant, batch, NOW)


def shown(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return samples(generate_latest(metrics.collect()).decode())


# --- formats --------------------------------------------------------------------------------------


async def test_the_text_is_openmetrics_if_the_scraper_asks_for_it(api: Api) -> None:
    await api.put(b"x" * 1000)
    response = await api.get("/metrics", headers={"Accept": OPENMETRICS})
    text = await response.text()

    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    families = list(openmetrics_parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    assert {"overspill_captures", "process_cpu_seconds"} <= {family.name for family in families}


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "text/html", "application/openmetrics-text;version=x", ";;=,", "text/plain;version=9" * 50],
)
async def test_whatever_a_scraper_accepts_it_gets_the_metrics(api: Api, accept: str) -> None:
    response = await api.get("/metrics", headers={"Accept": accept})

    assert response.status == 200
    assert "overspill_captures" in await response.text()


async def test_there_are_no_series_of_creation_times(api: Api) -> None:
    await api.put(b"x" * 1000)
    for accept in ("", OPENMETRICS):
        assert "_created" not in await (await api.get("/metrics", headers={"Accept": accept})).text()


# --- declarations ---------------------------------------------------------------------------------


def test_every_declaration_is_one_metric_with_a_name_by_the_conventions() -> None:
    names = [metric.full_name for metric in METRICS]

    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert metric.name.removesuffix("_info").isidentifier(), metric.name
        assert metric.help.endswith("."), metric.name
        assert not metric.name.endswith("_total"), metric.name
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM), metric.name
        if metric.kind is Kind.HISTOGRAM:
            assert metric.name.endswith(("_bytes", "_seconds")), metric.name
            assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name


def test_no_series_is_missing_before_its_first_event() -> None:
    metrics = Metrics()
    before = shown(metrics)
    metrics.sweep(3, is_done=False)
    metrics.problem("not_found")
    metrics.damaged_record(is_repaired=True)

    assert shown(metrics).keys() == before.keys()


async def test_all_series_of_a_tool_are_there_from_its_first_event() -> None:
    metrics = Metrics()
    await count(metrics, "acme", observed("grep"))
    series = shown(metrics)

    for outcome in Outcome:
        assert series["overspill_tool_outputs_total", outcome, "acme", "grep"] == (
            outcome is Outcome.CAPTURED
        )
    assert series["overspill_captures_total", "created", "acme", "grep"] == 0
    assert series["overspill_reads_total", "grep", "acme", "grep"] == 0


async def test_every_operation_of_the_ports_is_there_before_the_first_of_them(api: Api) -> None:
    series = samples(await (await api.get("/metrics")).text())
    names = {
        key[2] for key in series if key[0] == "overspill_backend_operations_total" and key[1] == "catalog"
    }

    assert {"revoke_key", "forget_tenant", "doubt", "find"} <= names
    assert names <= set(dir(Catalog))


def test_what_is_stored_is_shown_by_tenant_and_that_of_a_tenant_that_went_is_nothing() -> None:
    metrics = Metrics()
    metrics.stored({"acme": Totals(2, 300, 30), "beta": Totals(1, 10, 5)})
    both = shown(metrics)
    metrics.stored({"beta": Totals(1, 10, 5)})
    one = shown(metrics)

    names = "overspill_stored_captures", "overspill_stored_content_bytes", "overspill_stored_bytes"
    assert [both[name, "acme"] for name in names] == [2, 300, 30]
    assert [one[name, "acme"] for name in names] == [0, 0, 0]
    assert [one[name, "beta"] for name in names] == [1, 10, 5]


async def test_the_service_shows_what_is_stored(api: Api) -> None:
    entry = await api.put(b"x" * 1000)
    await Maintenance(api.service).measure_totals()
    series = samples(await (await api.get("/metrics")).text())

    assert series["overspill_stored_bytes", "default"] == entry.stored_size
    assert series["overspill_stored_content_bytes", "default"] == 1000


async def test_the_service_shows_what_waits_in_spools(api: Api) -> None:
    now = datetime.now(UTC)
    waiting = SpoolBacklog(spool="ab" * 8, captures=3, size=300, oldest=now - timedelta(seconds=90))
    await observe(api, waiting)
    await Maintenance(api.service).measure_totals()
    full = samples(await (await api.get("/metrics")).text())
    await observe(api, SpoolBacklog(spool="ab" * 8))
    await Maintenance(api.service).measure_totals()
    empty = samples(await (await api.get("/metrics")).text())

    names = [f"overspill_spooled_{name}" for name in ("captures", "bytes", "oldest_seconds")]
    assert [full[name, "default"] for name in names] == [3, 300, pytest.approx(90, abs=30)]
    assert [empty[name, "default"] for name in names] == [0, 0, 0]


@pytest.mark.parametrize("spool", ["", "AB" * 8, "a" * 17, "a\n", "a" * 16 + "\n"])
async def test_a_spool_of_another_form_is_refused(api: Api, spool: str) -> None:
    response = await observe(api, SpoolBacklog(spool=spool, captures=1))

    assert response.status == 422


async def test_an_upload_from_a_spool_is_counted_with_its_time_there(api: Api) -> None:
    since = datetime.now(UTC) - timedelta(seconds=100)
    for label in (since.isoformat(), "nonsense", "9999-99-99"):
        await api.put(f"content {label}".encode(), **{f"Overspill_Label_{wire.SPOOLED_LABEL}": label})
    series = samples(await (await api.get("/metrics")).text())

    assert series["overspill_spool_uploads_total", "default"] == 1
    assert 100 <= series["overspill_spool_wait_seconds_sum", "default"] < 160


async def observe(api: Api, backlog: SpoolBacklog) -> Any:
    batch = Observations(batch=secrets.token_hex(8), observations=[], backlog=backlog)
    return await api.send("POST", "/v1/observations", data=msgspec.json.encode(batch))


# --- bounds ---------------------------------------------------------------------------------------


def test_names_beyond_the_bound_are_one() -> None:
    names = BoundedNames(2)

    assert [names(each) for each in "abcab"] == ["a", "b", OTHER, "a", "b"]


def test_one_tenants_tool_names_never_push_out_those_of_another() -> None:
    names = ToolNames(reserved=2, limit=5, shared=4)
    hostile = [names("hostile", f"tool {number}") for number in range(100)]
    second = [names("second", f"tool {number}") for number in range(100)]

    assert [len(set(each) - {OTHER}) for each in (hostile, second)] == [5, 3]
    assert [names(f"tenant {number}", "grep") for number in range(100)] == ["grep"] * 100
    assert names("hostile", "tool 4") == "tool 4"
    assert names("hostile", "tool 5") == OTHER


async def test_invented_tool_names_make_a_bounded_number_of_series() -> None:
    metrics = Metrics()
    await count(metrics, "hostile", *(observed(f"tool {number}") for number in range(1000)))
    await count(metrics, "honest", observed("grep"))
    series = shown(metrics)
    outputs = {key: value for key, value in series.items() if key[0] == "overspill_tool_outputs_total"}

    assert len(outputs) < 500
    assert sum(outputs.values()) == 1001
    assert outputs["overspill_tool_outputs_total", Outcome.CAPTURED, "honest", "grep"] == 1


async def test_a_large_report_is_counted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, by_iteration = [0], []
    name_of = Metrics._tool

    def noted(self: Metrics, tenant: str, tool: str) -> tuple[str, str]:
        counted[0] += 1
        return name_of(self, tenant, tool)

    async def watch() -> None:
        while True:
            by_iteration.append(counted[0])
            await asyncio.sleep(0)

    monkeypatch.setattr(Metrics, "_tool", noted)
    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await count(Metrics(), "a", *(observed(f"tool {number}") for number in range(1000)))
    watching.cancel()

    assert counted == [1000]
    assert max(after - before for before, after in pairwise(by_iteration)) <= 20


async def test_long_tool_names_make_no_long_text() -> None:
    metrics = Metrics()
    names = [f"{number}" + "\U0001f600" * 4000 for number in range(100)]
    for _ in range(2):
        await count(metrics, "hostile", *map(observed, names))

    assert len(PLAIN.encode(metrics.collect())) < 2 * 2**20
    assert any(fit(names[7], MAX_COUNTED_NAME) in labels for labels in shown(metrics))


# --- scrapers -------------------------------------------------------------------------------------


class Collecting:
    """Collects when it is told to, and counts."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = threading.Semaphore(0)

    def __call__(self) -> CollectorRegistry:
        self.count += 1
        registry = CollectorRegistry()
        Gauge("number", "The collection.", registry=registry).set(self.count)
        assert self.may_end.acquire(timeout=30)
        return registry


async def scrape_together(scrapes: Scrapes, count: int) -> list[asyncio.Task[bytes]]:
    tasks = [asyncio.create_task(scrapes.text(PLAIN)) for _ in range(count)]
    await asyncio.sleep(0.01)
    return tasks


async def test_many_scrapers_share_a_text_that_is_no_older_than_their_request() -> None:
    collecting = Collecting()
    scrapes = Scrapes(collecting)
    first = await scrape_together(scrapes, 1)
    late = await scrape_together(scrapes, 50)
    collecting.may_end.release(2)

    assert b"\nnumber 1.0" in await first[0]
    assert [b"\nnumber 2.0" in text for text in await asyncio.gather(*late)] == [True] * 50
    assert collecting.count == 2


async def test_a_scraper_that_hangs_up_takes_the_text_from_no_other() -> None:
    collecting = Collecting()
    scrapes = Scrapes(collecting)
    gone, waiting = await scrape_together(scrapes, 2)
    gone.cancel()
    collecting.may_end.release()

    assert b"\nnumber 1.0" in await waiting
