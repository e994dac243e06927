"""What blocks and messages have besides what their protocols say: that is how rows of data differ from them.

Rows have a `type`, a `role` or a `content` as well. But a model is shown all of a row, and of a block no more
than its text and its picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from overspill.text.rendering import plain_stats


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


MOST: Final = 4_000
"""Characters besides, in all blocks of a result together, up to which it is one."""
_SHORT: Final = 200
NO_TEXT: Final = 1
"""What a block without text counts as: nobody shows a model thousands of pictures."""
RESULT: Final = _names(
    "type kind role content id name status tool_call_id tool_use_id call_id tool_name is_error isError"
    " structuredContent structured_content output result artifact details additional_kwargs response_metadata"
    " usage_metadata tool_calls cache_control annotations _meta meta metadata max_output_length created_by"
    " toolUseId"
)
"""Fields of messages, items and results of tools."""
_OF_ALL: Final = _names("type kind id index annotations _meta meta metadata cache_control extras")
_MEDIA: Final = "data source url base64 file_id mime_type mimeType media_type source_type"
_OF_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    kind: _names(fields)
    for kinds, fields in (
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
    for kind in kinds.split()
}
_OF_RESOURCES: Final = _names("uri mimeType mime_type text blob _meta meta annotations")


def of_result(value: Any) -> int:
    """Characters that a message, item or result has besides."""
    return _weight(value, RESULT)


def other_fields(value: Any) -> list[str]:
    """The names of what a message, item or result has besides that is not short."""
    if not isinstance(value, Mapping):
        return []
    return [name for name in value if name not in RESULT and _length(value[name]) > _SHORT]


def of_block(block: Any, kind: str) -> int:
    """As `of_result`."""
    known = _OF_BLOCKS.get(kind)
    return _weight(block, RESULT if known is None else _OF_ALL | known)


def of_resource(resource: Any) -> int:
    return _weight(resource, _OF_RESOURCES)


def _weight(value: Any, known: frozenset[str]) -> int:
    """Objects have nothing besides: their classes are those of a protocol."""
    if not isinstance(value, Mapping):
        return 0
    return sum(len(str(name)) + _length(value[name]) for name in value if name not in known)


def _length(value: Any) -> int:
    """Characters of the texts in `value`, about; more than `MOST` where there may be many."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, (dict, list, tuple)):
        return 0
    found = plain_stats(value, MOST)
    return MOST + 1 if found is None else found.chars + found.values
