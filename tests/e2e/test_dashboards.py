"""The dashboards: current, complete, and each query has data in a real Prometheus after a short load."""

from __future__ import annotations

import json
import re
import secrets
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml
from dashboards.__main__ import DASHBOARDS, document
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from overspill import wire
from overspill.errors import OverspillError
from overspill.transfer.sync import SyncClient
from overspill.wire import Observation, Observations, Outcome
from overspill_service.telemetry.definitions import METRICS

from tests.e2e.test_rules import rules, series_of
from tests.servers.overspill import ForkedService, running
from tests.servers.prometheus import SCRAPE_SECONDS, Prometheus, scraping

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "service" / "deploy" / "grafana" / "dashboards"
GRAFANA = FOLDER.parent
NAME = re.compile(r"\b(?:\w+:)?(?:overspill|process)_\w+(?::\w+)?\b")
UNITS = {"percentunit", "bytes", "binBps", "cps", "reqps", "s", "short", "currencyUSD"}
LOAD_SECONDS = 6
ROUNDS_BEYOND = 4
"""How often the load goes on at least once it has reached the limit of its tenant."""
WIDTH = 24

Document = dict[str, Any]
PAGES: list[Document] = [document(make) for make in DASHBOARDS]


def provisioned(file: str) -> Document:
    document: Document = yaml.safe_load((GRAFANA / "provisioning" / file).read_text(encoding="utf-8"))
    return document


def panels(page: Document) -> Iterator[Document]:
    for panel in page["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels", [])


def expressions() -> list[tuple[str, Document, str]]:
    return [
        (f"{page['title']}: {panel['title']} {target['refId']}", panel, target["expr"])
        for page in PAGES
        for panel in panels(page)
        for target in panel["targets"]
    ]


# --- files ----------------------------------------------------------------------------------------


def test_the_files_are_what_the_code_makes() -> None:
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob("*.json")}

    assert files == {make.__name__: page for make, page in zip(DASHBOARDS, PAGES, strict=True)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["title"])
def test_grafanas_own_published_models_know_every_field(page: Document) -> None:
    """They are made from the schemas that Grafana publishes, and drop or refuse what is not in these."""
    plugins.register_default_plugins()

    assert json.loads(JSONEncoder().encode(Dashboard.from_json(page))) == page


def test_grafana_finds_its_source_and_its_dashboards_where_they_are_mounted() -> None:
    compose = yaml.safe_load((FOLDER.parents[3] / "docker-compose.yml").read_text(encoding="utf-8"))
    grafana = compose["services"]["grafana"]
    mounts = dict(volume.rsplit(":", 1)[0].split(":") for volume in grafana["volumes"])
    [source] = provisioned("datasources/prometheus.yml")["datasources"]
    [provider] = provisioned("dashboards/overspill.yml")["providers"]

    assert mounts["./service/deploy/grafana/dashboards"] == provider["options"]["path"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.startswith(provider["options"]["path"])
    assert (FOLDER / Path(home).name).exists()
    assert source["type"] == "prometheus"
    assert urlsplit(source["url"]).netloc == "prometheus:9090"
    scrape = yaml.safe_load((GRAFANA.parent / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scrape


# --- every panel ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["uid"])
def test_a_page_has_an_address_a_description_and_a_choice_of_prometheus(page: Document) -> None:
    assert page["uid"].startswith("overspill-")
    assert page["description"].endswith(".")
    assert page["templating"]["list"][0]["type"] == "datasource"
    assert page["links"][0]["tags"] == page["tags"] == ["overspill"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["uid"])
def test_a_panel_says_what_it_shows_and_in_which_unit(page: Document) -> None:
    for panel in panels(page):
        title = panel["title"]
        assert panel["description"].endswith("."), title
        assert panel["datasource"]["uid"] == "${datasource}", title
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"] in UNITS, title
        if panel["type"] == "stat":
            assert defaults["thresholds"]["steps"][0]["value"] is None, title
        for target in panel["targets"]:
            assert target["legendFormat"], title
            assert target["refId"], title


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["uid"])
def test_a_legend_names_what_tells_the_lines_apart(page: Document) -> None:
    for panel in panels(page):
        for target in panel["targets"] if panel["type"] == "timeseries" else ():
            inner = re.search(r"by \(([^)]*)\)", target["expr"])
            labels = set(re.split(r",\s*", inner[1])) - {"le"} if inner else set()
            assert labels <= set(re.findall(r"\{\{(\w+)}}", target["legendFormat"])) | {""}, panel["title"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["uid"])
def test_panels_fill_the_grid_and_do_not_overlap(page: Document) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(page):
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= WIDTH, panel["title"]
        assert not taken & cells, panel["title"]
        taken |= cells


def test_no_query_holds_a_rate_against_a_count() -> None:
    """Their quotient is no share: it becomes smaller with a longer time of the dashboard."""
    mixed = [name for name, _, expr in expressions() if "$__rate_interval" in expr and "$__range" in expr]

    assert mixed == []


def test_every_metric_is_shown_somewhere_or_is_a_detail() -> None:
    asked = {name for _, _, expr in expressions() for name in NAME.findall(expr)}
    asked |= {name for rule in rules() for name in NAME.findall(rule["expr"])}

    for metric in METRICS:
        assert metric.is_detail or series_of(metric) & asked, metric.full_name


def test_the_dashboards_ask_only_for_series_that_there_are() -> None:
    known = {name for metric in METRICS for name in series_of(metric)}
    known |= {rule["record"] for rule in rules() if "record" in rule}

    assert {name for _, _, expr in expressions() for name in NAME.findall(expr)} - known == set()


# --- a real Prometheus ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, float]]:
    """A Prometheus that has scraped a service under a load of everything, and when that began."""
    directory = tmp_path_factory.mktemp("loaded")
    service = ForkedService(directory / "service", workers=2, max_captures=20)  # soon over its limit
    with running(service):
        port = urlsplit(service.url).port
        assert port is not None
        with scraping(directory / "prometheus", [port]) as prometheus:
            began = time.time()
            load(service.url)
            time.sleep(2 * SCRAPE_SECONDS)
            yield prometheus, began


def load(url: str) -> None:
    """Do a bit of everything, over and over: captures, reads, refusals, reports."""
    with SyncClient(url, retries=0) as client:
        until = time.monotonic() + LOAD_SECONDS
        number = refused = 0
        while time.monotonic() < until or refused < ROUNDS_BEYOND:
            number += 1
            refused += one_round(client, number)
            time.sleep(0.3)


def one_round(client: SyncClient, number: int) -> bool:
    """Return whether the tenant's limit refused a capture."""
    since = datetime.now(UTC) - timedelta(minutes=1)
    labels = {wire.PREVIEW_LABEL: wire.PreviewKind.HEAD, wire.SPOOLED_LABEL: since.isoformat()}
    content = f"line {number}\n".encode() * 1000
    is_refused = False
    try:
        entry = client.put(content, tool="grep", call_id=f"call {number}", labels=labels)
        client.put(content, tool="grep", call_id=f"call {number}", labels=labels)
        with client.live(tool="build") as output:
            output.write(b"compiling\n")
    except OverspillError:  # over the tenant's limit: that is part of the load
        is_refused = True
    else:
        client.head(entry.id)
        client.grep(entry.id, "line")
        client.get(entry.id)
    with pytest.raises(OverspillError):
        client.get("cap_" + "a" * 20)
    seen = [
        Observation(tool="grep", outcome=outcome, count=2, bytes_before=9000, bytes_after=900)
        for outcome in Outcome
    ]
    seen[0] = msgspec.structs.replace(
        seen[0], tokens_kept_out=100, identical=1, bursts=1, sizes=(2, *[0] * 12)
    )
    backlog = wire.SpoolBacklog(spool="a" * 16, captures=3, size=3000, oldest=since)
    client.observe(Observations(batch=secrets.token_hex(8), observations=seen, backlog=backlog))
    return is_refused


def filled_in(expr: str) -> str:
    """The query as Grafana sends it for the last seconds, with every variable at a value that there is."""
    values = {
        "$__rate_interval": f"{4 * SCRAPE_SECONDS}s",
        "$__range": f"{LOAD_SECONDS}s",
        'tenant="$tenant"': 'tenant="default"',
        "$tenant": ".*",
        "$instance": ".*",
        "$tool": "grep",
        "$storage_price": "0.023",
        "$write_price": "0.005",
        "$read_price": "0.0004",
    }
    for variable, value in values.items():
        expr = expr.replace(variable, value)
    assert "$" not in expr, expr
    return expr


@pytest.mark.parametrize(("name", "panel", "expr"), expressions(), ids=[each[0] for each in expressions()])
def test_every_query_has_data(
    loaded: tuple[Prometheus, float], name: str, panel: Document, expr: str
) -> None:
    prometheus, began = loaded
    found = prometheus.query_range(filled_in(expr), start=began, end=time.time())

    assert found, f"{name} of {panel['type']} has no data: {filled_in(expr)}"
    values = [float(value) for series in found for _, value in series["values"]]
    assert any(value == value for value in values), f"{name} is NaN throughout"  # noqa: PLR0124


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["uid"])
def test_every_choice_has_something_to_choose(loaded: tuple[Prometheus, float], page: Document) -> None:
    for variable in page["templating"]["list"]:
        if variable["type"] == "query":
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            assert loaded[0].query(f"count by ({label}) ({filled_in(series)})"), variable["name"]


def test_every_recorded_series_that_needs_no_hours_has_data(loaded: tuple[Prometheus, float]) -> None:
    there = loaded[0].names()
    missing = {rule["record"] for rule in rules() if "record" in rule} - there

    assert missing == set()
