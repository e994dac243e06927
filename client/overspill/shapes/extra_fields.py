"""Measure the fields that a block or message has beyond its protocol, to distinguish it from rows of data.

Rows of data may have a `type`, a `role` or a `content` too. But a model is shown all of a row, and only the
text and picture of a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from overspill.text.rendering import plain_stats


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


MAX_EXTRA_CHARS: Final = 4_000
"""Blocks with more characters in other fields, all together, are data."""
_SHORT_CHARS: Final = 200
NO_TEXT: Final = 1
"""The characters that a block without text counts as: nobody shows a model thousands of pictures."""
RESULT_FIELDS: Final = _names(
    "type kind role content id name status tool_call_id tool_use_id call_id tool_name is_error isError"
    " structuredContent structured_content output result artifact details additional_kwargs response_metadata"
    " usage_metadata tool_calls cache_control annotations _meta meta metadata max_output_length created_by"
    " toolUseId"
)
"""Fields of messages, items and results of tools."""
_COMMON_FIELDS: Final = _names("type kind id index annotations _meta meta metadata cache_control extras")
_MEDIA: Final = "data source url base64 file_id mime_type mimeType media_type source_type"
_BLOCK_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    type_: _names(fields)
    for types, fields in (
        ("text input_text output_text", "text citations logprobs"),
        ("text-plain", f"text title context {_MEDIA}"),
        (
            "image input_image image_url audio input_audio video media",
            f"{_MEDIA} image_url input_audio detail format",
        ),
        ("file input_file", f"{_MEDIA} file file_data file_url filename"),
        ("document", "source title context citations"),
        ("resource", "resource"),
        ("resource_link", "uri mimeType mime_type size icons name title description"),
        ("search_result", "source title content citations"),
        ("tool_reference", "tool_name"),
        ("refusal", "refusal"),
        ("data uri", "data uri media_type"),
    )
    for type_ in types.split()
}
_RESOURCE_FIELDS: Final = _names("uri mimeType mime_type text blob _meta meta annotations")


def of_result(value: Any) -> int:
    """Return the characters that a message, item or result has in other fields."""
    return _extra_chars(value, RESULT_FIELDS)


def long_extra_fields(value: Any) -> list[str]:
    """Return the names of other fields of a message, item or result that are long."""
    if not isinstance(value, Mapping):
        return []
    return [name for name in value if name not in RESULT_FIELDS and _chars(value[name]) > _SHORT_CHARS]


def of_block(block: Any, type_: str) -> int:
    """Return the characters that a block of this type has in other fields."""
    known = _BLOCK_FIELDS.get(type_)
    return _extra_chars(block, RESULT_FIELDS if known is None else _COMMON_FIELDS | known)


def of_resource(resource: Any) -> int:
    """Return the characters that an MCP resource has in other fields."""
    return _extra_chars(resource, _RESOURCE_FIELDS)


def _extra_chars(value: Any, known: frozenset[str]) -> int:
    """Count the characters outside of `known` fields. Objects have none: their class is a protocol's."""
    if not isinstance(value, Mapping):
        return 0
    return sum(len(str(name)) + _chars(value[name]) for name in value if name not in known)


def _chars(value: Any) -> int:
    """Count the characters of the texts in `value`, about; more than `MAX_EXTRA_CHARS` if it is large."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, (dict, list, tuple)):
        return 0
    found = plain_stats(value, MAX_EXTRA_CHARS)
    return MAX_EXTRA_CHARS + 1 if found is None else found.chars + found.values
