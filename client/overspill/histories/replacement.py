"""Replaces results in a history by shorter ones. Messages that do not change stay the same objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.results import text_bytes
from overspill.histories.tool_results import tool_results, value_at
from overspill.shapes.examination import examine
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.fields import get, text_field
from overspill.shapes.replacing import with_values

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded
    from overspill.histories.tool_results import ToolResult
    from overspill.previews.notice_facts import Notice
    from overspill.shapes.fields import FieldPath

COPY_FIELDS: Final = ("artifact", "details")
"""Fields of a message that hold the tool's result a second time, for programs."""


def with_spilled(
    messages: list[Any], spilled: Sequence[tuple[ToolResult, Guarded]], *, keep_copies: bool = True
) -> list[Any]:
    """Return the history with the guard's results in it, or the same list if none became shorter."""
    new: dict[FieldPath, Any] = {}
    for result, guarded in spilled:
        if guarded.notice is not None:
            new |= shortened(result, guarded.value, guarded.notice)
    return with_new_values(messages, new, keep_copies=keep_copies)


def shortened(result: ToolResult, value: Any, notice: Notice) -> dict[FieldPath, Any]:
    """Return the new value at its path, in the form of the old one; empty if it is not shorter."""
    old = result.value
    if isinstance(old, (list, tuple)) and not isinstance(value, (list, tuple)):
        value = [{"type": "text", "text": str(notice)}]
    is_shorter = text_bytes(value) < text_bytes(old)
    return {result.path: value} if is_shorter and _keeps_form(value, result) else {}


def _keeps_form(value: Any, result: ToolResult) -> bool:
    """Return whether an item still has its type, and an object has not become a text."""
    if result.holder == result.path:
        return text_field(value, "type") == text_field(result.value, "type")
    return not (isinstance(result.value, Mapping) and isinstance(value, str))


def with_new_values(messages: list[Any], new: Mapping[FieldPath, Any], *, keep_copies: bool) -> list[Any]:
    """Return the history with new values at these paths. A message that cannot be changed stays as it is.

    Without `keep_copies` the fields in `COPY_FIELDS` become None in messages whose result is cut, or was cut
    before.
    """
    if not keep_copies:
        new = {**new, **_without_copies(messages, new)}
    changed = messages
    for at in sorted({int(path[0]) for path in new}):
        of_message = {path[1:]: value for path, value in new.items() if path[0] == at}
        try:
            message = with_values(messages[at], of_message)
        except Unchangeable:
            continue
        changed = list(messages) if changed is messages else changed
        changed[at] = message
    return changed


def _without_copies(messages: Sequence[Any], new: Mapping[FieldPath, Any]) -> dict[FieldPath, Any]:
    copies: dict[FieldPath, Any] = {}
    for result in tool_results(messages):
        if result.path in new or _is_guarded(result.value):
            holder = value_at(messages, result.holder)
            copies |= {(*result.holder, name): None for name in COPY_FIELDS if get(holder, name) is not None}
    return copies


def _is_guarded(value: Any) -> bool:
    shape = examine(value)
    return shape is not None and bool(shape.notices())
