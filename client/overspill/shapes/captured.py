"""One output as parts: its content, its totals, and a handle to the whole if it was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from msgspec import Struct

from overspill.reading.content_kind import HEAD_BYTES, detect
from overspill.shapes.examination import examine
from overspill.text import encoding
from overspill.text.measure import extent_of
from overspill.text.media_types import JSON_TYPE

if TYPE_CHECKING:
    from overspill.previews.notice_facts import Notice
    from overspill.text.body import Body

ContentKind: TypeAlias = Literal["text", "json", "log", "unknown"]


class CapturedOutput(Struct, frozen=True, kw_only=True):
    """`content` is the output itself, the same object; of a `truncated` output, the part that is shown.

    `capture` is the handle of the whole. It is None if nothing was stored, because `content` is all of it or
    because storing failed. `reason` says why storing, or a stream, failed. `path` is the file in the agent's
    workspace, if there is one. `notice` tells a model all this; it is None if nothing was cut. The totals are
    bytes of UTF-8 and lines of the whole.
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
        """Return the parts of an output. `notice` is None if it stays as it is."""
        found = examine(result)
        body = "" if found is None else found.body
        kind = "json" if found is not None and found.content_type == JSON_TYPE else kind_of(body)
        if notice is None:
            extent = extent_of(body)
            return cls(
                content=result,
                total_lines=extent.lines,
                total_bytes=extent.size,
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


def kind_of(body: Body) -> ContentKind:
    """Guess the kind of `body` from its first 8 KiB; `unknown` for an empty one and for binary data.

    Raises `OSError` if a file cannot be read.
    """
    if isinstance(body, str):
        head = body[:HEAD_BYTES].encode(errors="replace")
    else:
        head = encoding.part(body, 0, HEAD_BYTES)
    kind = detect(head, None)
    return "unknown" if kind == "binary" else cast("ContentKind", kind)
