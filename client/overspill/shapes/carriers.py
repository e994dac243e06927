"""Recognises carriers, which are a tool's messages, items and objects around content blocks.

Also recognises messages that no tool made.

`block_types` says how values are distinguished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from overspill.shapes import extra_fields
from overspill.shapes.block_types import (
    ITEMS,
    OTHER_BLOCKS,
    SHELL_OUTPUT,
    TEXT_BLOCKS,
    TEXT_FIELDS,
    TOOL_RESULT,
    are_blocks,
    listed,
    result_field,
    type_of,
)
from overspill.shapes.fields import get, text_field

_TOOL_MESSAGES: Final = frozenset({"tool", TOOL_RESULT, "function"})
_OTHER_MESSAGES: Final = frozenset(
    {"human", "ai", "system", "user", "assistant", "developer", "chat", "remove"}
)
STRUCTURED_FIELDS: Final = ("structuredContent", "structured_content")
_ERROR_FIELDS: Final = ("isError", "is_error")
_ID_FIELDS: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")
_RESULT_ROLES: Final = frozenset({"user", "function", "tool"})
_GEMINI_ROLES: Final = frozenset({"user", "model"})


def _type_and_role(value: Any) -> set[str]:
    return {text_field(value, "type"), text_field(value, "role")}


def is_error(result: Any) -> bool:
    """Return whether `result` says that its tool failed."""
    return any(get(result, name) is True for name in _ERROR_FIELDS)


def is_success(result: Any) -> bool:
    """Return whether `result` says that its tool did not fail."""
    return any(get(result, name) is False for name in _ERROR_FIELDS)


def is_other_message(value: Any) -> bool:
    """Return whether `value` is a message of a person, the model or the system: those are never touched."""
    if text_field(value, "role") in _GEMINI_ROLES and _is_made_of_parts(value):
        return True
    if not _type_and_role(value) & _OTHER_MESSAGES or get(value, "content") is None:
        return False
    return extra_fields.of_result(value) <= extra_fields.MAX_EXTRA_CHARS


def _is_made_of_parts(value: Any) -> bool:
    """Return whether `value` is a message of Gemini's, a `Content`, and nothing else."""
    is_alone = not isinstance(value, Mapping) or value.keys() <= {"role", "parts"}
    return is_alone and are_blocks(get(value, "parts"))


def is_carrier(value: Any) -> bool:
    """Return whether `value` is a tool's message or item, or carries content blocks."""
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple, set, frozenset)):
        return False
    if _is_plain_text_block(value):
        return False
    if is_turn_of_results(value) or is_tool_return(value) or is_command(value) or result_field(value):
        return True
    type_ = type_of(value)
    if type_ == SHELL_OUTPUT or has_identity(value):
        return True
    if type_ in ITEMS:
        held = get(value, TEXT_FIELDS[type_])
        return isinstance(held, str) or are_blocks(held)
    return not is_other_message(value) and _has_content(value)


def _is_plain_text_block(value: Any) -> bool:
    """Return whether `value` is a block of text at first sight, as nearly all blocks are."""
    if type(value) is not dict or "role" in value or "content" in value:
        return False
    type_ = value.get("type")
    return type(type_) is str and type_ in TEXT_BLOCKS


def has_identity(value: Any) -> bool:
    """Return whether `value` says whose result it is, or whether the call failed. Rows of data do neither."""
    type_ = type_of(value)
    content = get(value, TEXT_FIELDS.get(type_, "content"))
    if content is None or isinstance(content, (bool, int, float)):
        return False
    may_be = type_ in ITEMS or not type_ or bool(_type_and_role(value) & _TOOL_MESSAGES)
    if may_be and any(text_field(value, name) for name in _ID_FIELDS):
        return True
    is_result = not type_ and isinstance(content, (list, tuple))
    return is_result and any(_has_field(value, name) for name in (*_ERROR_FIELDS, *STRUCTURED_FIELDS))


def _has_field(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else get(value, name) is not None


def _has_content(value: Any) -> bool:
    content = get(value, "content")
    if isinstance(content, str):
        return bool(_type_and_role(value) & _TOOL_MESSAGES)
    return type_of(value) not in OTHER_BLOCKS and are_blocks(content)


def is_turn_of_results(value: Any) -> bool:
    """Return whether `value` is the message of a turn in which tools' results are sent."""
    if text_field(value, "role") not in _RESULT_ROLES:
        return False
    items = [*listed(get(value, "content")), *listed(get(value, "parts"))]
    return any(type_of(item) == TOOL_RESULT or result_field(item) for item in items)


def is_tool_return(value: Any) -> bool:
    """Return whether `value` is pydantic-ai's `ToolReturn`."""
    return text_field(value, "kind") == "tool-return" and not isinstance(value, Mapping)


def is_command(value: Any) -> bool:
    """Return whether `value` is LangGraph's `Command`: by its class's name and two of its fields."""
    return type(value).__name__ == "Command" and hasattr(value, "update") and hasattr(value, "goto")
