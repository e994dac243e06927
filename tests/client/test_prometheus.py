from __future__ import annotations

import gc
import shutil
import subprocess
import weakref

import pytest

pytest.importorskip("prometheus_client", reason="the extra overspill[prometheus] is not installed")

from overspill.guard.counts.prometheus import export
from overspill.guard.counts.tally import Tally
from overspill.wire import Outcome
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


class Owner:
    pass


def figures(registry: CollectorRegistry) -> dict[str, float]:
    """Every sample that is not 0, as `name{tool,outcome,bound}`."""
    shown: dict[str, float] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = [sample.labels[name] for name in ("tool", "outcome", "le") if name in sample.labels]
            if sample.value:
                shown[f"{sample.name}{{{','.join(labels)}}}"] = sample.value
    return shown


def test_what_the_tally_counts_is_shown() -> None:
    registry, tally, owner = CollectorRegistry(), Tally(), Owner()
    export(tally, owner, registry)
    tally.inline("grep").note(300)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)
    tally.add("bash", Outcome.CAPTURED, 10_000, 2_400)
    tally.add("bash", Outcome.INLINE, 90_000, 90_000, is_left_whole=True)

    shown = figures(registry)
    assert {name: value for name, value in shown.items() if "size_bytes" not in name} == {
        "overspill_client_tool_outputs_total{grep,inline}": 1,
        "overspill_client_tool_outputs_total{grep,captured}": 1,
        "overspill_client_tool_outputs_total{bash,captured}": 1,
        "overspill_client_tool_outputs_total{bash,inline}": 1,
        "overspill_client_tool_outputs_left_whole_total{bash,inline}": 1,
        "overspill_client_tool_output_bytes_total{bash,inline}": 90_000,
        "overspill_client_tool_output_kept_bytes_total{bash,inline}": 90_000,
        "overspill_client_tool_output_bytes_total{grep,inline}": 300,
        "overspill_client_tool_output_bytes_total{grep,captured}": 70_000,
        "overspill_client_tool_output_bytes_total{bash,captured}": 10_000,
        "overspill_client_tool_output_kept_bytes_total{grep,inline}": 300,
        "overspill_client_tool_output_kept_bytes_total{grep,captured}": 2_500,
        "overspill_client_tool_output_kept_bytes_total{bash,captured}": 2_400,
    }
    sizes = "overspill_client_tool_output_size_bytes"
    assert shown[f"{sizes}_count{{captured}}"] == 2
    assert shown[f"{sizes}_sum{{captured}}"] == 80_000
    assert shown[f"{sizes}_bucket{{inline,1024.0}}"] == 1
    assert f"{sizes}_bucket{{captured,4096.0}}" not in shown
    assert shown[f"{sizes}_bucket{{captured,16384.0}}"] == 1
    assert shown[f"{sizes}_bucket{{captured,262144.0}}"] == 2
    assert shown[f"{sizes}_bucket{{captured,+Inf}}"] == 2


def test_a_guard_that_is_exported_twice_is_shown_once() -> None:
    registry, tally, owner = CollectorRegistry(), Tally(), Owner()
    export(tally, owner, registry)
    export(tally, owner, registry)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)

    assert figures(registry)["overspill_client_tool_outputs_total{grep,captured}"] == 1


def test_several_guards_add_up() -> None:
    registry, tallies, owner = CollectorRegistry(), [Tally(), Tally()], Owner()
    for tally in tallies:
        export(tally, owner, registry)
        tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)

    assert figures(registry)["overspill_client_tool_outputs_total{grep,captured}"] == 2
    assert figures(registry)["overspill_client_tool_output_size_bytes_count{captured}"] == 2


def test_figures_never_fall_when_a_guard_is_gone() -> None:
    registry, tally = CollectorRegistry(), Tally()
    owner = Owner()
    export(tally, owner, registry)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)
    before = figures(registry)
    del owner
    gc.collect()

    assert figures(registry) == before


def test_guards_that_are_gone_take_no_memory() -> None:
    registry = CollectorRegistry()
    alive: weakref.WeakSet[Tally] = weakref.WeakSet()
    for _ in range(100):
        owner, tally = Owner(), Tally()
        alive.add(tally)
        export(tally, owner, registry)
        tally.add("grep", Outcome.CAPTURED, 1, 1)
        del owner, tally
    shown = figures(registry)
    gc.collect()

    assert shown["overspill_client_tool_outputs_total{grep,captured}"] == 100
    assert len(alive) == 0


def test_tool_labels_are_bounded_over_all_guards() -> None:
    registry, owner = CollectorRegistry(), Owner()
    for guard in range(3):
        tally = Tally()
        export(tally, owner, registry)
        for number in range(400):
            tally.add(f"tool_{guard}_{number}", Outcome.CAPTURED, 1, 1)

    shown = [name for name in figures(registry) if "tool_outputs_total" in name]
    assert len(shown) == 501
    assert figures(registry)["overspill_client_tool_outputs_total{(other),captured}"] == 700


def test_each_registry_shows_all() -> None:
    registries, tally, owner = [CollectorRegistry(), CollectorRegistry()], Tally(), Owner()
    for registry in registries:
        export(tally, owner, registry)
    tally.add("grep", Outcome.CAPTURED, 70_000, 2_500)

    assert [
        figures(registry)["overspill_client_tool_outputs_total{grep,captured}"] for registry in registries
    ] == [1, 1]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on the PATH")
def test_the_figures_are_clean_for_promtool() -> None:
    registry, tally, owner = CollectorRegistry(), Tally(), Owner()
    export(tally, owner, registry)
    for tool in ("grep", 'a"\\\n', "\ud800"):
        for outcome in Outcome:
            tally.add(tool, outcome, 5_000, 1)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True, check=False
    )

    assert (checked.returncode, checked.stderr.decode()) == (0, "")
