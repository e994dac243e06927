"""Recognises content blocks of MCP, Anthropic, OpenAI, LangChain, Bedrock, Gemini and others.

Three kinds of values are distinguished, by their fields alone, because no framework is imported here:

- a *block* is one part of a message's content: a text, an image, a file;
- a *carrier* is a tool's message, item or result around blocks (see `carriers`);
- everything else is data, or a message of a person, the model or the system.

A block has a `type`, or an object in pydantic-ai a `kind`, or one in Haystack a class of a known name. Blocks
of Bedrock and Strands and parts of Gemini have no type but one telling field, as `{"text": …}` or
`{"inlineData": {…}}`: a dict with that field, or an object of a class that has all of them and sets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.fields import get, names_of, text_field

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DEPTH: Final = 8
"""No protocol nests blocks deeper than this."""
TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text", "text-plain"})
RESOURCE: Final = "resource"
DOCUMENT: Final = "document"
SHELL_OUTPUT: Final = "shell_call_output"
TOOL_RESULT: Final = "tool_result"
TEXT_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(TEXT_BLOCKS, "text"),
    **dict.fromkeys((TOOL_RESULT, "search_result", "text-content", "TextResultContent"), "content"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), "output"),
    **dict.fromkeys(("local_shell_call_output", "apply_patch_call_output"), "output"),
    **dict.fromkeys(("program_output", "function_result"), "result"),
}
"""The field with a text or blocks, by the type of the block or item."""
ITEMS: Final = frozenset(
    type_ for type_, field in TEXT_FIELDS.items() if field in {"output", "result"} or type_ == TOOL_RESULT
)
"""Types of blocks and items that are a tool's result by themselves."""
OTHER_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    type_: frozenset(fields.split())
    for types, fields in (
        ("image input_image image_url", "data source url image_url base64 base64_image file_id id"),
        ("audio input_audio video media", "data source url input_audio base64 file_id id"),
        ("file input_file", "file file_id file_data file_url base64 base64_data source mime_type"),
        ("document", "source file_id"),
        ("resource", "resource"),
        ("resource_link", "uri"),
        ("search_result", "content"),
        ("tool_reference", "tool_name"),
        ("refusal", "refusal"),
        ("data uri", "uri"),
    )
    for type_ in types.split()
}
"""Blocks without text, and the fields of which a dict has one: rows of data have a `type` as well."""
SINGLE_BLOCKS: Final = TEXT_BLOCKS | {"image", "input_image", "image_url", "audio", "input_audio"}
"""Dicts of these types are blocks outside of a list as well. Dicts of other types may be any data there."""
OTHER_KINDS: Final = frozenset(
    {"binary", "image-url", "audio-url", "video-url", "document-url", "uploaded-file", "cache-point"}
)
_CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "TextContent": ("text", "text"),
    "ImageContent": ("image", "base64_image"),
    "FileContent": ("file", "base64_data"),
}
"""Haystack's classes of blocks: what type they stand for, and a field that is text in each."""
_SIGNED: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "compaction", "encrypted_content"})

KEYED_TEXT: Final = "text"
KEYED_JSON: Final = "json"
KEYED_TOOL_RESULT: Final = "toolResult"
KEYED_RESPONSES: Final = frozenset({"functionResponse", "function_response"})
KEYED_MEDIA: Final = frozenset(
    {"image", "audio", "video", "document", "inlineData", "inline_data", "fileData", "file_data"}
    | {"cachePoint", "s3Location"}
)
_KEYED_CALLS: Final = frozenset(
    {"toolUse", "functionCall", "function_call", "executableCode", "executable_code"}
    | {"reasoningContent", "guardContent"}
)
_KEYED: Final = frozenset({KEYED_TEXT, KEYED_JSON, KEYED_TOOL_RESULT, *KEYED_RESPONSES}) | (
    KEYED_MEDIA | _KEYED_CALLS
)
_BESIDE_KEY: Final = frozenset(
    {"citations", "citationsContent", "thought", "thoughtSignature", "thought_signature"}
    | {"videoMetadata", "video_metadata", "mediaResolution", "media_resolution"}
    | {"partMetadata", "part_metadata"}
)
"""Fields that may stand beside the telling one."""
_MAX_KEYED_FIELDS: Final = 4


def type_of(value: Any) -> str:
    """Return the `type` of a block or item.

    For an object without one it is the `kind`, as in pydantic-ai, or that of its class, as in Haystack.
    """
    found = text_field(value, "type")
    if found or isinstance(value, Mapping):
        return found
    return text_field(value, "kind") or _type_of_class(value)


def _type_of_class(value: Any) -> str:
    type_, field = _CLASSES.get(type(value).__name__, ("", ""))
    return type_ if type_ and isinstance(get(value, field), str) else ""


def telling_field(block: Any) -> str:
    """Return the one field that identifies a block without a type; empty for anything else."""
    names = _set_fields(block)
    if len(names) != 1 or names[0] not in _KEYED:
        return ""
    value = get(block, names[0])
    if names[0] == KEYED_TEXT:
        return KEYED_TEXT if isinstance(value, str) else ""
    return "" if names[0] != KEYED_JSON and isinstance(value, (str, list, int, float)) else names[0]


def _set_fields(block: Any) -> list[str]:
    if isinstance(block, Mapping):
        if len(block) > _MAX_KEYED_FIELDS:
            return []
        return [name for name in block if isinstance(name, str) and name not in _BESIDE_KEY]
    if "inline_data" not in getattr(type(block), "__pydantic_fields__", ()):
        return []
    set_names = [name for name in names_of(block) or () if get(block, name) is not None]
    return [name for name in set_names if name not in _BESIDE_KEY]


def result_field(value: Any) -> str:
    """Return the only field of Bedrock's and Gemini's tool results; empty for anything else."""
    field = "" if type_of(value) else telling_field(value)
    return field if field == KEYED_TOOL_RESULT or field in KEYED_RESPONSES else ""


def is_block(item: Any) -> bool:
    """Return whether `item` is one content block."""
    type_ = type_of(item)
    if not type_:
        return bool(telling_field(item))
    if type_ in TEXT_BLOCKS:
        return isinstance(get(item, "text"), str)
    if type_ in TEXT_FIELDS and isinstance(get(item, TEXT_FIELDS[type_]), (str, list, tuple)):
        return True
    if not isinstance(item, Mapping) and type_ in OTHER_KINDS:
        return True
    found = [get(item, name) for name in OTHER_BLOCKS.get(type_, ())]
    return any(each is not None and not isinstance(each, (list, tuple)) for each in found)


def is_signed(block: Any) -> bool:
    """Return whether a provider refuses `block` if anything in it is changed, as with a model's thoughts."""
    return type_of(block) in _SIGNED or (
        isinstance(block, Mapping) and any(str(name).startswith("encrypted") for name in block)
    )


def are_blocks(value: Any) -> bool:
    """Return whether `value` is a list or tuple of content blocks, which may have bare strings among them."""
    return (
        isinstance(value, (list, tuple))
        and any(not isinstance(item, str) for item in value)
        and all(isinstance(item, str) or is_block(item) for item in value)
    )


def listed(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged; an empty one for any other value."""
    return value if isinstance(value, (list, tuple)) else ()
