"""The answer to a wait, as a model reads it: new lines, why the wait is over, and how to wait on. Pure.

`inspect_output` does the waiting; what can wait is a `Waiter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from overspill.wire import State

if TYPE_CHECKING:
    from overspill import wire


@runtime_checkable
class Waiter(Protocol):
    """A client, which can wait for a capture. What is on this machine cannot: it has ended."""

    def wait(self, ref: str, pattern: str | None = None, /, **more: Any) -> Any:
        """Wait for a line."""


class _WaitRequest(Protocol):
    """What a wait waits for."""

    @property
    def capture(self) -> str: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def lines(self) -> int | None: ...
    @property
    def timeout_seconds(self) -> float: ...


def wait_answer(asked: _WaitRequest, found: wire.Waited) -> dict[str, Any]:
    """Return what a model is told: the new lines, why the wait is over, and how to wait on."""
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
        "next": _next_wait(asked, found) if found.state is State.LIVE else None,
    }


def _ending(found: wire.Waited) -> dict[str, Any]:
    if found.state is State.LIVE:
        return {}
    gap = {} if found.gap is None else {"gap": str(found.gap)}
    return {"status": found.status, "exit_code": found.exit_code, **gap}


def _next_wait(asked: _WaitRequest, found: wire.Waited) -> dict[str, Any]:
    pattern = {} if asked.pattern is None else {"pattern": asked.pattern}
    lines = {} if asked.lines is None else {"lines": asked.lines}
    seconds = {"timeout_seconds": asked.timeout_seconds}
    how = {**pattern, **lines, "cursor": str(found.cursor), **seconds}
    return {"capture": asked.capture, "mode": "wait", **how}


def shortened(answer: dict[str, Any], surplus: int) -> dict[str, Any]:
    """Return an answer that is at least `surplus` characters shorter. Its last lines stay: they are news."""
    content = answer["content"]
    kept = content[min(len(content), surplus) :]
    kept = kept.partition("\n")[2] if "\n" in kept else kept
    gone = content[: len(content) - len(kept)].count("\n")
    return {**answer, "content": kept, "start_line": answer["start_line"] + gone, "truncated": True}
