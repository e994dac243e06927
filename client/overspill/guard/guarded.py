"""The guard's result for one output."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from overspill.previews.notice_facts import Notice  # noqa: TC001  (`help` and signatures resolve the annotation)
from overspill.previews.notice_forms import as_dict
from overspill.shapes.carriers import is_error
from overspill.wire import Outcome

METADATA: Final = "overspill"
"""The name under which a framework's metadata has `Guarded.metadata`."""


class Guarded(Struct, frozen=True, kw_only=True):
    """The guard's result for one output. `value` goes into the conversation.

    `bytes_before` and `bytes_after` are the sizes before and after the guard's cut. `lines` is counted only
    for an output that spilled. `capture` is the handle, if the output is stored. `reason` says why it is not
    in the service, or why it could not be measured. `matches_dropped` is the tool's own figure of what its
    view left out, passed on as given; it has another unit than bytes and is never added to them. `notice` is
    what stands in `value` for the text that was cut. `masked` is how many secrets of each kind were masked in
    what is stored; None if there were none. `same_as` is the handle of an earlier output of the
    session with the same bytes.
    """

    value: Any
    outcome: Outcome
    bytes_before: int
    bytes_after: int
    capture: str | None = None
    lines: int | None = None
    reason: str | None = None
    matches_dropped: int | None = None
    notice: Notice | None = None
    same_as: str | None = None
    masked: dict[str, int] | None = None

    @property
    def tokens_kept_out(self) -> int:
        """About how many tokens of the output did not enter the conversation."""
        if self.notice is None or self.bytes_before <= 0:
            return 0
        share = max(0, self.bytes_before - self.bytes_after) / self.bytes_before
        return round(self.notice.tokens * share)

    @property
    def metadata(self) -> dict[str, Any]:
        """The fate of the output, for programs: small values that can be written as JSON.

        Adapters put it where their framework keeps metadata, under the name `overspill`.
        """
        if self.notice is None:
            return {"outcome": str(self.outcome)}
        found = {
            "outcome": str(self.outcome),
            "capture": self.capture,
            "total_bytes": self.notice.size,
            "total_lines": self.notice.lines,
            "total_tokens": self.notice.tokens,
            "shown_bytes": self.bytes_after,
            "read_with": {"tool": "inspect_output", "arguments": {"capture": self.capture}},
            "same_as": self.same_as,
            "reason": self.reason,
            "masked": self.masked,
        }
        if self.capture is None:
            del found["read_with"]
        return {name: value for name, value in found.items() if value is not None}

    def as_response(self) -> dict[str, Any]:
        """Return a dict with `status`, the outcome, and the untouched `result` or the parts of the notice.

        A result with `isError` keeps it.
        """
        if self.notice is None:
            return {"status": str(Outcome.INLINE), "result": self.value}
        failed = {"isError": True} if is_error(self.value) else {}
        return {**as_dict(self.notice), **failed}
