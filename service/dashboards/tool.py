"""One tool of one tenant: whether its threshold and its preview are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.telemetry import definitions as d

from dashboards import panels as p
from dashboards import queries as q
from dashboards.fleet import kept_out
from dashboards.panels import Query, Step

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

TOOL = 'tenant=~"$tenant", tool="$tool"'


def tool() -> Dashboard:
    page = p.page(
        "overspill-tool",
        "Overspill tool",
        "What becomes of one tool's outputs, and whether its threshold and its preview are right.",
        p.choice("tenant", "Tenant", f"label_values({d.TOOL_OUTPUTS.full_name}, tenant)"),
        p.choice(
            "tool",
            "Tool",
            f'label_values({d.TOOL_OUTPUTS.full_name}{{tenant=~"$tenant"}}, tool)',
            is_multi=False,
        ),
    )
    return p.with_rows(
        page,
        {"In the chosen time": _numbers(), "Over time": _graphs(), "What a policy should know": _advice()},
    )


def _numbers() -> tuple[p.Panel, ...]:
    outputs, spilled = q.total(d.TOOL_OUTPUTS, TOOL), q.total(d.TOOL_OUTPUTS, TOOL, q.SPILLED)
    created = q.total(d.CAPTURES, TOOL, 'result="created"')
    return (
        p.number("Outputs", "All outputs of the tool.", p.COUNT, Query(outputs, "outputs")),
        p.number(
            "Truncation rate",
            "Share that did not enter the conversation whole.",
            p.PERCENT,
            Query(q.ratio(spilled, outputs), "truncation rate"),
        ),
        p.number(
            "Mean size when spilled",
            "Bytes of an output that did not stay whole.",
            p.BYTES,
            Query(q.ratio(q.total(d.TOOL_OUTPUT_BYTES, TOOL, q.SPILLED), spilled), "mean size"),
        ),
        p.number(
            "Read back",
            "Captures that were read for the first time, of those that were stored.",
            p.PERCENT,
            Query(q.ratio(q.total(d.CAPTURES_READ, TOOL), created), "read back"),
            Step(None, p.GREEN),
            Step(0.5, p.AMBER),
            Step(0.8, p.RED),
        ),
        p.number(
            "Identical outputs",
            "Spilled outputs with the same bytes as an earlier one of the session.",
            p.COUNT,
            Query(q.total(d.IDENTICAL_OUTPUTS, TOOL), "identical"),
        ),
        p.number(
            "Bursts of calls",
            "How often the tool was called again and again soon after a notice.",
            p.COUNT,
            Query(q.total(d.RERUN_BURSTS, TOOL), "bursts"),
        ),
    )


def _graphs() -> tuple[p.Panel, ...]:
    stored, raw = q.rate(d.CAPTURE_STORED_BYTES, TOOL), q.rate(d.CAPTURE_BYTES, TOOL)
    return (
        p.graph(
            "Outputs by outcome",
            "What became of the outputs.",
            p.PER_SECOND,
            Query(q.rate(d.TOOL_OUTPUTS, TOOL, by="outcome"), "{{outcome}}"),
            stacked=True,
        ),
        p.graph(
            "Bytes before and after",
            "Bytes as the tool returned them, and as they entered conversations.",
            p.BYTES_PER_SECOND,
            Query(q.rate(d.TOOL_OUTPUT_BYTES, TOOL), "as returned"),
            Query(q.rate(d.TOOL_OUTPUT_KEPT_BYTES, TOOL), "in conversations"),
            Query(f"({kept_out('', TOOL)})", "kept out"),
        ),
        p.graph(
            "Read back and run again",
            "First reads of captures, identical outputs and bursts of calls.",
            p.PER_SECOND,
            Query(q.rate(d.CAPTURES_READ, TOOL), "first reads"),
            Query(q.rate(d.IDENTICAL_OUTPUTS, TOOL), "identical outputs"),
            Query(q.rate(d.RERUN_BURSTS, TOOL), "bursts"),
        ),
        p.graph(
            "Stored size of content",
            "Bytes in the object store for each byte of content.",
            p.PERCENT,
            Query(q.ratio(stored, raw), "stored share"),
        ),
    )


def _advice() -> tuple[p.Panel, ...]:
    at_once = q.total(d.CAPTURES_READ_AT_ONCE, TOOL, by="size")
    return (
        p.graph(
            "Captures by size",
            "By the bound of their class in bytes. What is a little above the threshold could stay whole.",
            p.PER_SECOND,
            Query(q.rate(d.CAPTURES_BY_SIZE, TOOL, by="size"), "{{size}}"),
            width=8,
            stacked=True,
        ),
        p.number(
            "Read within a minute, by size",
            "Share of captures that were needed at once: for them the notice only cost a call.",
            p.PERCENT,
            Query(q.ratio(at_once, q.total(d.CAPTURES_BY_SIZE, TOOL, by="size")), "{{size}}"),
            width=8,
        ),
        p.graph(
            "Reads by mode",
            "Mostly tail: the preview should show the end.",
            p.PER_SECOND,
            Query(q.rate(d.READS, TOOL, by="mode"), "{{mode}}"),
            width=8,
            stacked=True,
        ),
    )
