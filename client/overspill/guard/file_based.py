"""The answers of file-based output management under the names that its own design gives their fields.

Views of what this package gives under its own names, for callers that were written for that design:

    output_fields(guard.capture_output_sync(…))      content, truncated, file_path, total_lines, …
    response_fields(guard.process_sync(…))           status, data or preview, full_output_file, …
    answer_fields(inspect_output(…))                 matches with match, context_before, context_after
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guarded import Guarded
    from overspill.shapes.captured import CapturedOutput


def output_fields(output: CapturedOutput) -> dict[str, Any]:
    """Return the parts of an output. `file_path` is the file in a workspace, else the handle, else None."""
    return {
        "content": output.content,
        "truncated": output.truncated,
        "file_path": output.path or output.capture,
        "total_lines": output.total_lines,
        "total_bytes": output.total_bytes,
        "content_type": output.content_type,
    }


def response_fields(guarded: Guarded) -> dict[str, Any]:
    """Return a tool's response wrapped: `data` untouched, or a `preview` and the `full_output_file`.

    `status` is `inline`, `captured` wherever the whole is kept, or `truncated`.
    """
    made = guarded.notice
    if made is None:
        return {"status": str(Outcome.INLINE), "data": guarded.value}
    return {
        "status": str(Outcome.CAPTURED if made.stored else Outcome.TRUNCATED),
        "preview": made.preview,
        "full_output_file": made.path or made.id or None,
        "total_lines": made.lines,
        "total_bytes": made.size,
        "message": made.head,
        **({"read_more": made.read_more} if made.stored else {}),
    }


def answer_fields(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `inspect_output` answered with each match as `match` between its contexts."""
    if "matches" not in answer:
        return dict(answer)
    return {**answer, "matches": [_match(found) for found in answer["matches"]]}


def _match(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "line_number": found["line_number"],
        "match": found["line"],
        "context_before": list(found.get("before") or ()),
        "context_after": list(found.get("after") or ()),
    }
