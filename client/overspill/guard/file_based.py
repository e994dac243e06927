"""Dicts with the field names of file-based output management, for callers that were written for it.

Each function converts a value of this package:

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
    """Convert an output. `file_path` is the file in a workspace, or else the handle, or None."""
    return {
        "content": output.content,
        "truncated": output.truncated,
        "file_path": output.path or output.capture,
        "total_lines": output.total_lines,
        "total_bytes": output.total_bytes,
        "content_type": output.content_type,
    }


def response_fields(guarded: Guarded) -> dict[str, Any]:
    """Wrap a tool's response: `data` untouched, or a `preview` and the `full_output_file`.

    `status` is `inline`, `truncated`, or `captured` if the whole is stored anywhere.
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
    """Convert an answer of `inspect_output`: each match has `match`, `context_before` and `context_after`."""
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
