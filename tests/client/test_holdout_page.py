"""The page on experiments runs as it stands, and states the numbers of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from overspill.advice.comparison import MEASURES, MIN_COUNTS, MIN_EVENTS
from overspill.advice.estimates import MIN_GROUPS
from overspill.guard.bursts import MIN_CALLS, WINDOW_SECONDS
from overspill.guard.holdout import KEEP_BYTES, MAX_KEPT_BYTES
from overspill.wire import GROUPS

from tests.client.shell import Shell
from tests.readme_examples import examples_of

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

PAGE = Path(__file__).parents[2] / "client" / "docs" / "holdout.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_experiment_of_the_page_runs_and_the_command_line_reports_it(own_service: ServiceProcess) -> None:
    [example] = examples_of(PAGE)
    shell = Shell(own_service.url)

    assert example.printed(own_service) == example.stable_output
    shown = shell("holdout", "whole-outputs")
    [report] = json.loads(shell("holdout", "--json").data)
    assert (shown.code, shown.err) == (0, "")
    assert "experiment whole-outputs\n" in shown.out
    assert "bytes into the conversation, per session: higher\n" in shown.out
    assert re.search(r"^  ratio +[\d.]+ \([\d.]+ to [\d.]+\)$", shown.out, re.MULTILINE)
    assert report["usual"]["sessions"] + report["holdout"]["sessions"] == 240
    assert (
        "nothing was counted of 'another' in this time; there are whole-outputs"
        in shell("holdout", "another").err
    )


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert set(MIN_COUNTS.values()) == {100}
    assert "in each arm 100 sessions, and 100 units of the measure's denominator" in TEXT
    assert f"in at least {MIN_GROUPS} groups; and {MIN_EVENTS} events" in TEXT
    assert f"each arm has {GROUPS} random groups" in TEXT
    assert f"called {MIN_CALLS} times within {WINDOW_SECONDS / 60:.0f} minutes" in TEXT
    assert f"| `keep_bytes` | {KEEP_BYTES:,} |" in TEXT
    assert f"at most {MAX_KEPT_BYTES // 2**20} MiB" in TEXT
    assert "There are seven measures" in TEXT
    assert len(MEASURES) == 7
