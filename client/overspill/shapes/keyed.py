"""Blocks that have no type but one telling field: those of Bedrock and Strands, and Gemini's parts.

A block such as `{"text": …}` or `{"inlineData": {…}}` is a dict with one of these fields, or an object of a
class that has them all and sets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from overspill.shapes.fields import get, names_of

TEXT: Final = "text"
DATA: Final = "json"
TOOL_RESULT: Final = "toolResult"
RESPONSES: Final = frozenset({"functionResponse", "function_response"})
_MEDIA: Final = frozenset(
    {"image", "audio", "video", "document", "inlineData", "inline_data", "fileData", "file_data"}
    | {"cachePoint", "s3Location"}
)
_CALLS: Final = frozenset(
    {"toolUse", "functionCall", "function_call", "executableCode", "executable_code"}
    | {"reasoningContent", "guardContent"}
)
_FIELDS: Final = frozenset({TEXT, DATA, TOOL_RESULT, *RESPONSES, *_MEDIA, *_CALLS})
_BESIDE: Final = frozenset(
    {"citations", "citationsContent", "thought", "thoughtSignature", "thought_signature"}
    | {"videoMetadata", "video_metadata", "mediaResolution", "media_resolution"}
    | {"partMetadata", "part_metadata"}
)
_MOST_FIELDS: Final = 4


def telling_field(block: Any) -> str:
    """The field that tells what `block` is; empty for what is no such block."""
    names = _set_fields(block)
    if len(names) != 1 or names[0] not in _FIELDS:
        return ""
    value = get(block, names[0])
    if names[0] == TEXT:
        return TEXT if isinstance(value, str) else ""
    return "" if names[0] != DATA and isinstance(value, (str, list, int, float)) else names[0]


def _set_fields(block: Any) -> list[str]:
    if isinstance(block, Mapping):
        if len(block) > _MOST_FIELDS:
            return []
        return [name for name in block if isinstance(name, str) and name not in _BESIDE]
    if "inline_data" not in getattr(type(block), "__pydantic_fields__", ()):
        return []
    set_names = [name for name in names_of(block) or () if get(block, name) is not None]
    return [name for name in set_names if name not in _BESIDE]
