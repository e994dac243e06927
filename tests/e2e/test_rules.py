"""The rules for Prometheus, on made-up series: what they compute, and when each alert fires."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from overspill_service.telemetry.definitions import METRICS
from overspill_service.telemetry.metric import Kind, Metric

from tests.e2e.programs import program, run

RULES = Path(__file__).parents[2] / "service" / "deploy" / "rules.yml"
TESTS = sorted((Path(__file__).parent / "rules").glob("*.yml"))
NAME = re.compile(r"\b(?:\w+:)?overspill_\w+(?::\w+)?\b")


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def series_of(metric: Metric) -> set[str]:
    """The names of a metric's series in queries."""
    if metric.kind is Kind.HISTOGRAM:
        return {f"{metric.full_name}{suffix}" for suffix in ("_bucket", "_sum", "_count")}
    return {metric.full_name}


def test_the_rules_are_clean_for_promtool() -> None:
    result = run(program("promtool"), "check", "rules", "--lint-fatal", RULES)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_the_rules_compute_and_fire_what_they_should(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / file.name
    copy.write_text(file.read_text(encoding="utf-8").replace("RULES", str(RULES)))
    result = run(program("promtool"), "test", "rules", copy)

    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_and_every_recorded_series_is_tested() -> None:
    tested = "".join(file.read_text(encoding="utf-8") for file in TESTS)
    recorded = "".join(rule["expr"] for rule in rules()) + tested

    for rule in rules():
        name = rule.get("alert") or rule["record"]
        assert name in (tested if "alert" in rule else recorded), name


def test_the_rules_ask_only_for_series_that_there_are() -> None:
    known = {name for metric in METRICS for name in series_of(metric)}
    known |= {rule["record"] for rule in rules() if "record" in rule}
    asked = {name for rule in rules() for name in NAME.findall(rule["expr"])}

    assert asked - known == set()


def test_every_alert_says_how_urgent_it_is_what_happened_and_what_to_do() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("page", "ticket", "info"), rule["alert"]
            assert rule["annotations"]["summary"].endswith("."), rule["alert"]
            assert rule["annotations"]["action"].endswith("."), rule["alert"]
