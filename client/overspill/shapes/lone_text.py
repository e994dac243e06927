"""The text of a message that certainly has no other: a fast path for most messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from overspill.shapes import extra_fields
from overspill.shapes.carriers import STRUCTURED_FIELDS
from overspill.shapes.long_fields import is_of_framework
from overspill.text.rendering import is_plain_container, plain_stats

_SIMPLE_MESSAGES: Final = frozenset({"tool", "function", None})
_MESSAGE_FIELDS: Final = frozenset({"type", "role", "kind", "content", *STRUCTURED_FIELDS})
_CONVERSE_RESULT: Final = frozenset({"toolUseId", "status", "content"})
_MCP_RESULT: Final = frozenset({"content", "isError", "structuredContent", "_meta", "resultType"})
_TEXT_BLOCK: Final = frozenset({"type", "text"})
_SHORT_CHARS: Final = 200
_FEW_VALUES: Final = 50


def lone_text_of(message: Any) -> str | None:
    """Return the text of a tool's message that certainly has no other; None if `parts_with_text` has to look.

    A fast path for most messages: ten times as fast.
    """
    own: Any = type(message)
    try:
        if own is list:
            return _lone_text_in(message)
        if own is dict and message.keys() == _CONVERSE_RESULT:
            return _lone_block_of(message)
        if own is dict and type(message.get("content")) is list and message.keys() <= _MCP_RESULT:
            return _lone_mcp_text_of(message)
        if own is dict:
            fields, more = message, None
        elif _keeps_fields(own):
            fields, more = message.__dict__, getattr(message, "__pydantic_extra__", None)
        else:
            return None
        text, words = fields.get("content"), {fields.get("type"), fields.get("role")}
        is_message = words <= _SIMPLE_MESSAGES and words != {None} and "kind" not in fields
        has_more = more or (own is dict and not fields.keys() <= extra_fields.RESULT_FIELDS)
        has_more = has_more or any(fields.get(name) is not None for name in STRUCTURED_FIELDS)
        has_more = has_more or not (is_of_framework(own) or _are_short(fields, "content"))
    except Exception:  # noqa: BLE001  (a foreign metaclass or attribute: whatever it raises)
        return None
    return text if type(text) is str and is_message and not has_more else None


def _lone_text_in(blocks: list[Any]) -> str | None:
    """Return the text of a list that is one block of text: with no other field, or with empty ones."""
    if len(blocks) != 1:
        return None
    block: Any = blocks[0]
    own: Any = type(block)
    if own is dict:
        is_text = block.keys() == _TEXT_BLOCK and block["type"] == "text"
        return block["text"] if is_text and type(block["text"]) is str else None
    if not _keeps_fields(own) or getattr(block, "__pydantic_extra__", None):
        return None
    fields = block.__dict__
    text, filled = fields.get("text"), [name for name, value in fields.items() if value]
    is_text = type(text) is str and fields.get("type") == "text" and _TEXT_BLOCK.issuperset(filled)
    return text if is_text else None


def _lone_block_of(result: dict[str, Any]) -> str | None:
    """Return the text of a result of Bedrock or Strands that is one block of text, and nothing else."""
    content = result["content"]
    if type(content) is not list or len(content) != 1 or type(result["toolUseId"]) is not str:
        return None
    block = content[0]
    text = block.get("text") if type(block) is dict and len(block) == 1 else None
    is_short = len(result["toolUseId"]) <= _SHORT_CHARS and _are_short({"status": result["status"]})
    return text if type(text) is str and result["toolUseId"] and is_short else None


def _lone_mcp_text_of(result: dict[str, Any]) -> str | None:
    """Return the text of an MCP result that is one block of text, with at most the same text as data."""
    content = result["content"]
    block = content[0] if len(content) == 1 else None
    if type(block) is not dict or block.keys() != _TEXT_BLOCK or block["type"] != "text":
        return None
    text, structured = block["text"], result.get("structuredContent")
    is_same = structured is None or (type(structured) is dict and structured == {"result": text})
    is_alone = is_same and _are_short(result, "content", "structuredContent")
    return text if type(text) is str and is_alone else None


def _are_short(fields: dict[str, Any], *but: str) -> bool:
    """Return whether each other field is empty, a flag, a short text, or small data."""
    for name, field in fields.items():
        if not field or field is True or name in but:
            continue
        if len(field) > _SHORT_CHARS if type(field) is str else not _is_small(field):
            return False
    return True


def _is_small(data: Any) -> bool:
    found = plain_stats(data, _FEW_VALUES) if is_plain_container(data) else None
    return found is not None and found.chars <= _SHORT_CHARS


@lru_cache(maxsize=256)
def _keeps_fields(kind: type) -> bool:
    """Return whether objects of this class keep the fields of a message in their `__dict__` alone."""
    return kind.__dictoffset__ != 0 and kind.__name__ != "Command" and not _MESSAGE_FIELDS & set(dir(kind))
