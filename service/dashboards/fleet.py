"""The first view: which tools and tenants truncate, what is kept out, and whether previews suffice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill_service.telemetry import definitions as d

from dashboards import panels as p
from dashboards import queries as q
from dashboards.panels import Query, Step

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

TENANT = 'tenant=~"$tenant"'
CREATED = 'result="created"'
BY_TOOL = "tenant, tool"


def fleet() -> Dashboard:
    page = p.page(
        "overspill-fleet",
        "Overspill fleet",
        "Which tools and tenants truncate, what is kept out of conversations, and whether previews suffice.",
        p.choice("tenant", "Tenant", f"label_values({d.TOOL_OUTPUTS.full_name}, tenant)"),
    )
    groups = {
        "In the chosen time": _kept_out_numbers() + _warnings(),
        "Truncation": _truncation(),
        "Do previews suffice?": _asked_again() + _previews(),
        "Every tool": [_tools()],
    }
    return p.with_rows(page, groups)


def kept_out(by: str = "", *matchers: str) -> str:
    """Return the bytes per second that did not enter conversations."""
    before = q.rate(d.TOOL_OUTPUT_BYTES, *matchers, by=by)
    return f"{before} - {q.rate(d.TOOL_OUTPUT_KEPT_BYTES, *matchers, by=by)}"


def _kept_out_numbers() -> tuple[p.Panel, ...]:
    spilled, seen = q.total(d.TOOL_OUTPUTS, TENANT, q.SPILLED), q.total(d.TOOL_OUTPUTS, TENANT)
    return (
        p.number(
            "Truncation rate",
            "Share of tool outputs that did not enter the conversation whole.",
            p.PERCENT,
            Query(q.ratio(spilled, seen), "truncation rate"),
        ),
        p.number(
            "Bytes kept out",
            "Bytes of outputs less those of what stands in their place.",
            p.BYTES,
            Query(
                f"{q.total(d.TOOL_OUTPUT_BYTES, TENANT)} - {q.total(d.TOOL_OUTPUT_KEPT_BYTES, TENANT)}",
                "bytes kept out",
            ),
        ),
        p.number(
            "Tokens kept out",
            "The same in tokens, as the clients estimate them.",
            p.COUNT,
            Query(q.total(d.TOKENS_KEPT_OUT, TENANT), "tokens kept out"),
        ),
    )


def _warnings() -> tuple[p.Panel, ...]:
    spilled = q.total(d.TOOL_OUTPUTS, TENANT, q.SPILLED)
    return (
        p.number(
            "Read back",
            "Captures that were read for the first time, of those that were stored. High: previews miss what "
            "matters.",
            p.PERCENT,
            Query(q.ratio(q.total(d.CAPTURES_READ, TENANT), _created(TENANT)), "read back"),
            *(Step(None, p.GREEN), Step(0.5, p.AMBER), Step(0.8, p.RED)),
        ),
        p.number(
            "Run again",
            "Identical outputs and bursts of calls, of all that spilled. High: the model ignores the notice.",
            p.PERCENT,
            Query(q.ratio(_again(TENANT), spilled), "run again"),
            *(Step(None, p.GREEN), Step(0.1, p.AMBER), Step(0.3, p.RED)),
        ),
        p.number(
            "Outputs lost",
            "Outputs that were cut and kept nowhere, because neither the service nor a spool took them.",
            p.COUNT,
            Query(q.total(d.TOOL_OUTPUTS, TENANT, 'outcome="truncated"'), "outputs lost"),
            *(Step(None, p.GREEN), Step(1, p.RED)),
        ),
    )


def _truncation() -> tuple[p.Panel, ...]:
    by_tool = q.ratio(
        q.rate(d.TOOL_OUTPUTS, TENANT, q.SPILLED, by=BY_TOOL), q.rate(d.TOOL_OUTPUTS, TENANT, by=BY_TOOL)
    )
    return (
        p.graph(
            "Truncation rate by tool",
            "The ten tools with the highest share of outputs that did not stay whole.",
            p.PERCENT,
            Query(q.top(10, by_tool), "{{tenant}}: {{tool}}"),
            most=1,
        ),
        p.graph(
            "Outputs by outcome",
            "Inline: whole in the conversation. Captured: in the service. Spooled: on the agent's machine, "
            "for now. Truncated: lost in part.",
            p.PER_SECOND,
            Query(q.rate(d.TOOL_OUTPUTS, TENANT, by="outcome"), "{{outcome}}"),
            stacked=True,
        ),
        p.graph(
            "Bytes kept out by tool",
            "The ten tools whose outputs would have taken the most room in conversations.",
            p.BYTES_PER_SECOND,
            Query(q.top(10, f"({kept_out(BY_TOOL, TENANT)})"), "{{tenant}}: {{tool}}"),
            stacked=True,
        ),
        p.graph(
            "Tokens kept out by tenant",
            "The ten tenants with the most.",
            p.PER_SECOND,
            Query(q.top(10, q.rate(d.TOKENS_KEPT_OUT, TENANT, by="tenant")), "{{tenant}}"),
            stacked=True,
        ),
    )


def _asked_again() -> tuple[p.Panel, ...]:
    created = q.rate(d.CAPTURES, TENANT, CREATED, by=BY_TOOL)
    return (
        p.graph(
            "Read back by tool",
            "Captures read for the first time, of those stored at the same time. The ten highest shares.",
            p.PERCENT,
            Query(
                q.top(10, q.ratio(q.rate(d.CAPTURES_READ, TENANT, by=BY_TOOL), created)),
                "{{tenant}}: {{tool}}",
            ),
        ),
        p.graph(
            "Run again by tool",
            "Identical outputs and bursts of calls soon after a notice.",
            p.PER_SECOND,
            Query(
                q.top(10, q.rate(d.IDENTICAL_OUTPUTS, TENANT, by=BY_TOOL)),
                "{{tenant}}: {{tool}}, identical output",
            ),
            Query(q.top(10, q.rate(d.RERUN_BURSTS, TENANT, by=BY_TOOL)), "{{tenant}}: {{tool}}, burst"),
        ),
    )


def _previews() -> tuple[p.Panel, ...]:
    never = q.ratio(
        q.total(d.PREVIEWED_CAPTURES_READ, TENANT, by="preview"),
        q.total(d.PREVIEWED_CAPTURES, TENANT, by="preview"),
    )
    return (
        p.number(
            "Never read back by kind of preview",
            "Share of the captures of each kind of preview that nobody has read: the preview was enough, or "
            "the notice was ignored. Compare with how often the tool was run again.",
            p.PERCENT,
            Query(f"1 - {never}", "{{preview}}"),
            width=8,
        ),
        p.heat(
            "Time to the first read",
            "How long after its upload a capture is read for the first time.",
            p.SECONDS,
            Query(q.rate(d.FIRST_READ_DELAY, TENANT, by="le", suffix="_bucket"), "{{le}}"),
            width=8,
        ),
        p.heat(
            "Sizes of outputs",
            "All outputs that guards saw, as the tools returned them.",
            p.BYTES,
            Query(q.rate(d.TOOL_OUTPUT_SIZE, TENANT, by="le", suffix="_bucket"), "{{le}}"),
            width=8,
        ),
    )


def _tools() -> p.Panel:
    spilled = q.total(d.TOOL_OUTPUTS, TENANT, q.SPILLED, by=BY_TOOL)
    outputs = q.total(d.TOOL_OUTPUTS, TENANT, by=BY_TOOL)
    before = q.total(d.TOOL_OUTPUT_BYTES, TENANT, by=BY_TOOL)
    columns = {
        "Outputs": (p.COUNT, outputs),
        "Truncation rate": (p.PERCENT, q.ratio(spilled, outputs)),
        "Bytes kept out": (p.BYTES, f"{before} - {q.total(d.TOOL_OUTPUT_KEPT_BYTES, TENANT, by=BY_TOOL)}"),
        "Tokens kept out": (p.COUNT, q.total(d.TOKENS_KEPT_OUT, TENANT, by=BY_TOOL)),
        "Read back": (
            p.PERCENT,
            q.ratio(q.total(d.CAPTURES_READ, TENANT, by=BY_TOOL), _created(TENANT, by=BY_TOOL)),
        ),
        "Run again": (p.PERCENT, q.ratio(_again(TENANT, by=BY_TOOL), spilled)),
    }
    return p.rows(
        "Every tool",
        "One row for each tenant and tool, in the dashboard's time. A tool that never spilled has no shares.",
        columns,
        ("tenant", "tool"),
        sort="Bytes kept out",
    )


def _created(*matchers: str, by: str = "") -> str:
    return q.total(d.CAPTURES, *matchers, CREATED, by=by)


def _again(*matchers: str, by: str = "") -> str:
    identical, bursts = (q.total(each, *matchers, by=by) for each in (d.IDENTICAL_OUTPUTS, d.RERUN_BURSTS))
    return f"({identical} + {bursts})"
