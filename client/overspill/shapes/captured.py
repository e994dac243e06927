"""An output as file-based output management hands it on: whole, or cut with a handle to the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from overspill.shapes.content import examine
from overspill.shapes.content_kind import ContentKind, kind_of
from overspill.text.measure import extent_of
from overspill.text.rendering import JSON_TYPE

if TYPE_CHECKING:
    from overspill.previews.notice import Notice


class CapturedOutput(Struct, frozen=True, kw_only=True):
    """`content` is the output itself, the same object, or where it is `truncated` the part that is shown.

    `capture` is the handle of the whole, and None for what was not stored: because it is all in `content`,
    or because that failed, and then `reason` says why, as it does for a stream that failed. `path`
    is the file in the agent's workspace, if there is one. `notice` tells a model all this; None where nothing
    is cut. Totals are those of the whole: bytes of UTF-8, and lines.
    """

    content: Any
    truncated: bool = False
    total_lines: int = 0
    total_bytes: int = 0
    content_type: ContentKind = "unknown"
    capture: str | None = None
    path: str = ""
    notice: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, result: Any, notice: Notice | None, reason: str | None) -> CapturedOutput:
        """What became of `result`; `notice` is None where it stays as it is."""
        found = examine(result)
        body = "" if found is None else found.body
        kind = "json" if found is not None and found.content_type == JSON_TYPE else kind_of(body)
        if notice is None:
            size, lines = extent_of(body)
            return cls(
                content=result,
                total_lines=lines,
                total_bytes=size,
                content_type=kind,
                reason=reason,
            )
        return cls(
            content=notice.preview,
            truncated=True,
            total_lines=notice.lines,
            total_bytes=notice.size,
            content_type=kind,
            capture=notice.id if notice.stored else None,
            path=notice.path,
            notice=str(notice),
            reason=reason,
        )
