"""A summary as a text for a model, in the form of the other answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill import wire
from overspill.text import quantities
from overspill.text.reasons import one_safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator


def described(found: wire.Summary) -> dict[str, Any]:
    """Return a summary in the form of the other answers, with its figures as text."""
    content = "".join(f"{line}\n" for line in _sections(found))
    return {
        "content": content,
        "start_line": 1,
        "end_line": found.total_lines,
        "total_lines": found.total_lines,
        "total_bytes": found.total_bytes,
        "content_type": one_safe_line(found.content_type),
        "kind": found.kind,
        "truncated": found.truncated,
        "approx_tokens": 0,
        "matches": [],
        **({"state": str(found.state)} if isinstance(found.state, wire.State) else {}),
    }


def _sections(found: wire.Summary) -> Iterator[str]:
    yield f"{quantities.plural(found.total_bytes, 'byte')}, {quantities.plural(found.total_lines, 'line')}"
    if found.truncated:
        yield f"only the first {quantities.plural(found.scanned_bytes, 'byte')} were looked at"
    yield f"content: {found.kind} ({found.content_type})"
    yield f"longest line: {quantities.plural(found.longest_line, 'byte')}; empty lines: {found.empty_lines:,}"
    yield f"lines that look like errors: {_numbered(found.errors)}"
    yield f"lines that look like warnings: {_numbered(found.warnings)}"
    repeated = [f"{each.count:,} times from line {each.first_line}: {each.line}" for each in found.repeated]
    parts = {
        "most repeated, numbers aside": repeated,
        "shape of the JSON": (found.json_shape or "").splitlines(),
        "first lines": found.first_lines,
        "last lines": found.last_lines,
    }
    for title, lines in parts.items():
        if lines:
            yield f"{title}:"
            yield from (f"  {line}" for line in lines)


def _numbered(severity: wire.Severity) -> str:
    numbers = ", ".join(map(str, severity.line_numbers))
    more = ", …" if severity.count > len(severity.line_numbers) else ""
    return f"{severity.count:,}{f' (at {numbers}{more})' if numbers else ''}"
