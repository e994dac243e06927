"""The answer to a wait, as a model reads it: new lines, and why the wait is over. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.wire import State

if TYPE_CHECKING:
    from overspill import wire


def wait_answer(found: wire.Waited) -> dict[str, Any]:
    """Return what a model is told, without how to wait on."""
    return {
        "content": found.content,
        "start_line": found.start_line,
        "end_line": found.end_line,
        "total_lines": found.total_lines,
        "total_bytes": found.total_bytes,
        "truncated": found.skipped_lines > 0,
        "approx_tokens": found.approx_tokens,
        "matches": [match.line_number for match in found.matches],
        "reason": found.reason,
        "state": str(found.state),
        **_ending(found),
        **({"advice": found.advice} if found.advice else {}),
    }


def _ending(found: wire.Waited) -> dict[str, Any]:
    if found.state is State.LIVE:
        return {}
    gap = {} if found.gap is None else {"gap": str(found.gap)}
    return {"status": found.status, "exit_code": found.exit_code, **gap}


def shortened(answer: dict[str, Any], surplus: int) -> dict[str, Any]:
    """Return an answer that is at least `surplus` characters shorter. Its last lines stay: they are news."""
    content = answer["content"]
    kept = content[min(len(content), surplus) :]
    kept = kept.partition("\n")[2] if "\n" in kept else kept
    gone = content[: len(content) - len(kept)].count("\n")
    return {**answer, "content": kept, "start_line": answer["start_line"] + gone, "truncated": True}
