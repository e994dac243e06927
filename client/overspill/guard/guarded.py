"""What the guard made of one output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from overspill.previews.notice_forms import as_dict
from overspill.shapes.block_types import is_error
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.previews.notice import Notice


class Guarded(Struct, frozen=True, kw_only=True):
    """`value` goes into the conversation.

    `bytes_before` and `bytes_after` are the guard's figures, before and after its cut; `lines` is counted
    for what spilled only. `matches_dropped` is the tool's own figure of what its view left out, passed on as
    given: the two have different units and are never added up. `reason` says why the service has nothing, or
    why the output could not be measured. `notice` is what stands in `value` for the text that was cut.
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

    def as_response(self) -> dict[str, Any]:
        """The output wrapped: `status` and either the untouched `result` or the notice as a dict.

        `status` is the outcome; `isError` stays where the result has it.
        """
        if self.notice is None:
            return {"status": str(Outcome.INLINE), "result": self.value}
        failed = {"isError": True} if is_error(self.value) else {}
        return {**as_dict(self.notice), **failed}
