"""The span of one output that spills, and the attributes that it adds to the span around it.

    execute_tool build        the agent's own, if its framework or its code makes one
      spill build             this one: waiting for a slot, encoding, storing, the notice
        PUT /v1/captures/…    each attempt to upload; it may end later, if it outlasts the agent's wait

Names of attributes: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/#execute-tool-span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.execution import tracing
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded
    from overspill.guard.spiller import Spiller
    from overspill.spools.store_request import Origin

_TOOL_SPANS: Final = (("gen_ai.operation.name", "execute_tool"), ("openinference.span.kind", "TOOL"))
"""The attributes that mark the span of a tool call, by the conventions of OpenTelemetry and OpenInference."""


async def traced(spiller: Spiller) -> Guarded:
    """Let an output spill in a span. Its origin gets the span's traceparent."""
    around, origin = tracing.current(), spiller.origin
    with tracing.span(f"spill {tracing.text(origin.tool)}", attributes=_call(origin)) as own:
        spiller.origin = origin._replace(traceparent=tracing.traceparent())
        guarded = await spiller.spilled()
        found = _attributes(guarded)
        tracing.describe(own, found)
        if _is_tool_call(around):
            tracing.describe(around, found)
        is_lost = guarded.outcome is Outcome.TRUNCATED
        if is_lost and spiller.storage.can_keep:  # else it is by design that nothing is stored
            tracing.fail(own, "not_stored")
        return guarded


def _is_tool_call(span: Any) -> bool:
    """Return whether a span is that of a tool call, as it says itself: only then one output belongs to it."""
    attributes = getattr(span, "attributes", None) or {}
    return any(attributes.get(name) == value for name, value in _TOOL_SPANS)


def _call(origin: Origin) -> dict[str, str]:
    found = {"gen_ai.tool.name": tracing.text(origin.tool)}
    if not origin.is_minted:
        found["gen_ai.tool.call.id"] = tracing.text(origin.call_id)
    return found


def _attributes(guarded: Guarded) -> dict[str, str | int]:
    found: dict[str, str | int | None] = {
        "overspill.outcome": str(guarded.outcome),
        "overspill.capture.id": guarded.capture,
        "overspill.output.size": guarded.bytes_before,
        "overspill.output.kept_size": guarded.bytes_after,
        "overspill.output.lines": guarded.lines,
        "overspill.output.tokens_kept_out": guarded.tokens_kept_out,
        "overspill.same_as": guarded.same_as,
    }
    return {name: value for name, value in found.items() if value is not None}
