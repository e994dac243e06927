"""Where text is in the results, messages and content blocks of MCP, Anthropic, OpenAI, LangChain and others.

A place is a path of field names and positions from the result to a text, or to structured content. No
framework is imported: dicts and objects are told by their `type`, `role` or `kind` and by their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from overspill.shapes import extra_fields, keyed
from overspill.shapes.fields import FieldPath, get, is_sequence, text_field, with_fields, with_items

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text", "text-plain"})
RESOURCE: Final = "resource"
_DOCUMENT: Final = "document"
_TOOL_RESULT: Final = "tool_result"
_SHELL_OUTPUT: Final = "shell_call_output"
_HOLDERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(TEXT_BLOCKS, "text"),
    **dict.fromkeys((_TOOL_RESULT, "search_result", "text-content", "TextResultContent"), "content"),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), "output"),
    **dict.fromkeys(("local_shell_call_output", "apply_patch_call_output"), "output"),
    **dict.fromkeys(("program_output", "function_result"), "result"),
}
"""Which field holds a text, or blocks, in a block or item of this type."""
_ITEMS: Final = frozenset(
    kind for kind, field in _HOLDERS.items() if field in {"output", "result"} or kind == _TOOL_RESULT
)
"""Blocks and items that are a tool's result by themselves."""
_OTHER_BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(fields.split())
    for kinds, fields in (
        ("image input_image image_url", "data source url image_url base64 file_id id"),
        ("audio input_audio video media", "data source url input_audio base64 file_id id"),
        ("file input_file", "file file_id file_data file_url base64 source mime_type"),
        ("document", "source file_id"),
        ("resource", "resource"),
        ("resource_link", "uri"),
        ("search_result", "content"),
        ("tool_reference", "tool_name"),
        ("refusal", "refusal"),
        ("data uri", "uri"),
    )
    for kind in kinds.split()
}
"""Blocks without text, and the fields of which a dict has one: rows of data have a `type` as well."""
_ALONE: Final = TEXT_BLOCKS | {"image", "input_image", "image_url", "audio", "input_audio"}
"""Dicts of these types are blocks outside of a list as well; others may be any data."""
_OTHER_KINDS: Final = frozenset(
    {"binary", "image-url", "audio-url", "video-url", "document-url", "uploaded-file", "cache-point"}
)
_TOOL_MESSAGES: Final = frozenset({"tool", _TOOL_RESULT, "function"})
_SIMPLE_MESSAGES: Final = frozenset({"tool", "function", None})
_OTHER_MESSAGES: Final = frozenset(
    {"human", "ai", "system", "user", "assistant", "developer", "chat", "remove"}
)
_STRUCTURED_FIELDS: Final = ("structuredContent", "structured_content")
_TELLING_FIELDS: Final = frozenset({"type", "role", "kind", "content", *_STRUCTURED_FIELDS})
_ERROR_FIELDS: Final = ("isError", "is_error")
_ID_FIELDS: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")
_RESULT_ROLES: Final = frozenset({"user", "function", "tool"})
_GEMINI_ROLES: Final = frozenset({"user", "model"})
_SIGNED: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "compaction", "encrypted_content"})
_MESSAGES: Final = "messages"
_PAIR: Final = 2
_BLOCK_TEXTS: Final = ((), ("text",), (RESOURCE, "text"), ("source", "data"))
_DEEPEST: Final = 8
"""Blocks in blocks beyond this are no protocol's."""
_MOST_PLACES: Final = 1_000_000


class _Removed(Enum):
    GONE = "gone"


REMOVED: Final = _Removed.GONE
"""In place of a text: its block leaves the list that it is in."""


class Part(NamedTuple):
    """`value` is a text, or structured content: what is rendered as JSON."""

    path: FieldPath
    value: Any


_PartOrSize: TypeAlias = Part | int
"""A place, or how many characters there are besides."""


def is_error(result: Any) -> bool:
    """Whether `result` says that its tool failed."""
    return any(get(result, name) is True for name in _ERROR_FIELDS)


def is_success(result: Any) -> bool:
    """Whether `result` says that its tool did not fail."""
    return any(get(result, name) is False for name in _ERROR_FIELDS)


def is_other_message(value: Any) -> bool:
    """Whether `value` is a message of a person, the model or the system: those are never touched."""
    if text_field(value, "role") in _GEMINI_ROLES and _is_made_of_parts(value):
        return True
    if not _words(value) & _OTHER_MESSAGES or get(value, "content") is None:
        return False
    return extra_fields.of_result(value) <= extra_fields.MOST


def _is_made_of_parts(value: Any) -> bool:
    """Whether `value` is a message of Gemini's, a `Content`, and nothing else."""
    is_alone = not isinstance(value, Mapping) or value.keys() <= {"role", "parts"}
    return is_alone and _are_blocks(get(value, "parts"))


def parts_with_text(result: Any) -> list[Part] | None:
    """Where the text of `result` is; None for what is none of the known shapes.

    Nor are blocks that have much besides: those are data.
    """
    if isinstance(result, (list, tuple)):
        known = is_blocks(result) or (bool(result) and all(_is_carrier(item) for item in result))
        found = _in_items(result, ()) if known else None
    else:
        found = _in_one(result)
    if found is None:
        return None
    listed: list[Part] = []
    more = 0
    for each in found:
        if isinstance(each, Part):
            listed.append(each)
        else:
            more += each
        if more > extra_fields.MOST or len(listed) > _MOST_PLACES:
            return None
    return listed


def sole_text_of(message: Any) -> str | None:
    """The text of a tool's message that surely has no other; None where `places` has to look.

    A short way for what most messages are: ten times as fast.
    """
    own: Any = type(message)
    try:
        if own is dict:
            fields, more = message, None
        elif _keeps_fields(own):
            fields, more = message.__dict__, getattr(message, "__pydantic_extra__", None)
        else:
            return None
        text, words = fields.get("content"), {fields.get("type"), fields.get("role")}
        is_message = words <= _SIMPLE_MESSAGES and words != {None} and "kind" not in fields
        has_more = more or (own is dict and not fields.keys() <= extra_fields.RESULT)
        has_more = has_more or any(fields.get(name) is not None for name in _STRUCTURED_FIELDS)
    except Exception:  # noqa: BLE001  (a foreign metaclass or attribute: whatever it raises)
        return None
    return text if type(text) is str and is_message and not has_more else None


@lru_cache(maxsize=256)
def _keeps_fields(kind: type) -> bool:
    """Whether objects of this class have what tells a message in their `__dict__` alone."""
    return kind.__dictoffset__ != 0 and kind.__name__ != "Command" and not _TELLING_FIELDS & set(dir(kind))


def is_blocks(items: Sequence[Any]) -> bool:
    """Whether all are content blocks, or bare strings among blocks."""
    return any(not isinstance(item, str) for item in items) and all(
        isinstance(item, str) or _is_block(item) for item in items
    )


def is_removable(path: FieldPath) -> bool:
    """Whether the text at `path` is all that its block in a list is there for."""
    at = next((at for at in range(len(path) - 1, -1, -1) if isinstance(path[at], int)), None)
    return at is not None and path[at + 1 :] in _BLOCK_TEXTS


def with_values(value: Any, new: Mapping[FieldPath, Any]) -> Any:
    """A copy of `value`, of the same class, with other values at these places.

    `GONE` takes a block out of its list, None a field away. Raises `Unchangeable`.
    """
    if () in new:
        return new[()]
    steps = _by_first_step(new)
    if not is_sequence(value):
        return with_fields(value, {name: with_values(get(value, name), at) for name, at in steps.items()})
    kept = [
        with_values(item, steps[at]) if at in steps else item
        for at, item in enumerate(value)
        if REMOVED not in steps.get(at, {}).values()
    ]
    return with_items(value, kept)


def _by_first_step(new: Mapping[FieldPath, Any]) -> dict[Any, dict[FieldPath, Any]]:
    steps: dict[Any, dict[FieldPath, Any]] = {}
    for path, value in new.items():
        steps.setdefault(path[0], {})[path[1:]] = value
    return steps


def _in_one(value: Any) -> Iterator[_PartOrSize] | None:
    if _is_carrier(value):
        return _in_carrier(value, ())
    may_be_alone = not isinstance(value, Mapping) or text_field(value, "type") in _ALONE
    return _in_block(value, ()) if may_be_alone and _is_block(value) else None


def _in_items(items: Sequence[Any], path: FieldPath) -> Iterator[_PartOrSize]:
    for at, item in enumerate(items):
        yield from _in_any(item, (*path, at))


def _in_any(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """The texts in a text, in blocks, or in one block."""
    if isinstance(value, str):
        yield Part(path, value)
    elif len(path) > _DEEPEST:
        return
    elif isinstance(value, (list, tuple)):
        yield from _in_items(value, path)
    elif _is_carrier(value):
        yield from _in_carrier(value, path)
    else:
        yield from _in_block(value, path)


def _in_block(block: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    kind = _kind(block)
    if not kind:
        yield from _in_keyed(block, keyed.telling_field(block), path)
        return
    yield extra_fields.of_block(block, kind)
    if kind in _HOLDERS:
        yield from _in_any(get(block, _HOLDERS[kind]), (*path, _HOLDERS[kind]))
    elif kind == RESOURCE:
        yield extra_fields.of_resource(get(block, RESOURCE))
        yield from _text_at(get(block, RESOURCE), "text", (*path, RESOURCE))
    elif kind == _DOCUMENT:
        source = get(block, "source")
        field = {"text": "data", "content": "content"}.get(text_field(source, "type"))
        if field is not None:
            yield from _in_any(get(source, field), (*path, "source", field))
    elif kind == _SHELL_OUTPUT:
        for at, output in enumerate(_listed(get(block, "output"))):
            for stream in ("stdout", "stderr"):
                yield from _text_at(output, stream, (*path, "output", at))
    else:
        yield extra_fields.NO_TEXT


def _in_keyed(block: Any, field: str, path: FieldPath) -> Iterator[_PartOrSize]:
    held = get(block, field)
    if field in {keyed.TEXT, keyed.DATA}:
        yield Part((*path, field), held)
    elif field == keyed.TOOL_RESULT:
        yield from _in_carrier(held, (*path, field))
    elif field in keyed.RESPONSES:
        yield from _in_response(held, (*path, field))
    else:
        yield extra_fields.NO_TEXT


def _in_response(response: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Of Gemini: what a function responded is an object."""
    if (held := get(response, "response")) is not None:
        yield Part((*path, "response"), held)


def _in_carrier(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    kind = _kind(value)
    if _is_tool_return(value):
        yield from _in_tool_return(value, path)
    elif _is_command(value):
        yield from _in_update(get(value, "update"), (*path, "update"))
    elif _is_turn_of_results(value):
        yield from _in_own_items(get(value, "content"), (*path, "content"))
        yield from _in_own_items(get(value, "parts"), (*path, "parts"))
    elif field := _telling_field(value):
        yield from _in_keyed(value, field, path)
    elif kind == _SHELL_OUTPUT:
        yield from _in_block(value, path)
    elif _has_identity(value):
        yield from _in_result(value, _HOLDERS.get(kind, "content"), path)
    elif kind in _ITEMS:
        yield from _in_block(value, path)
    else:
        yield extra_fields.of_result(value)
        yield from _in_any(get(value, "content"), (*path, "content"))
        yield from _in_structured(value, path)


def _in_result(value: Any, field: str, path: FieldPath) -> Iterator[Part]:
    """The parts of what is surely a tool's result: other things than blocks are data."""
    yield from _in_content(get(value, field), (*path, field))
    yield from _in_structured(value, path)
    for name in extra_fields.other_fields(value):
        if isinstance(value[name], (str, dict, list)) and name != field:
            yield Part((*path, name), value[name])


def _in_structured(value: Any, path: FieldPath) -> Iterator[Part]:
    for name in _STRUCTURED_FIELDS:
        if (structured := get(value, name)) is not None:
            yield Part((*path, name), structured)


def _in_content(content: Any, path: FieldPath) -> Iterator[Part]:
    if isinstance(content, str):
        yield Part(path, content)
    elif isinstance(content, (list, tuple)):
        for at, item in enumerate(content):
            yield from _in_item(item, (*path, at))
    elif content is not None and not isinstance(content, (bool, int, float)):
        yield Part(path, content)


def _in_item(item: Any, path: FieldPath) -> Iterator[Part]:
    if isinstance(item, str):
        yield Part(path, item)
    elif _is_signed(item):
        return
    elif _is_carrier(item) or _is_block(item):
        found = list(_in_any(item, path))
        if sum(each for each in found if isinstance(each, int)) <= extra_fields.MOST:
            yield from (each for each in found if isinstance(each, Part))
        else:
            yield Part(path, item)
    elif item is not None and not isinstance(item, (bool, int, float)):
        yield Part(path, item)


def _in_update(update: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Of LangGraph's commands: the tools' messages in what they write to the state, and nothing else."""
    if isinstance(update, (list, tuple)):
        for at, pair in enumerate(update):
            if isinstance(pair, tuple) and len(pair) == _PAIR and pair[0] == _MESSAGES:
                yield from _in_own_items(pair[1], (*path, at, 1))
    else:
        yield from _in_own_items(get(update, _MESSAGES), (*path, _MESSAGES))


def _in_own_items(items: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """The texts of tools in a list that others' share, or in the only one."""
    if not isinstance(items, (list, tuple)):
        if _is_carrier(items):
            yield from _in_carrier(items, path)
        return
    for at, item in enumerate(items):
        if _is_carrier(item):
            yield from _in_carrier(item, (*path, at))


def _in_tool_return(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Of pydantic-ai: a value for the model, and user content that follows it."""
    returned = get(value, "return_value")
    if isinstance(returned, str) or (isinstance(returned, (list, tuple)) and is_blocks(returned)):
        yield from _in_any(returned, (*path, "return_value"))
    elif returned is not None and not isinstance(returned, (bool, int, float)):
        yield Part((*path, "return_value"), returned)
    yield from _in_any(get(value, "content"), (*path, "content"))


def _text_at(value: Any, field: str, path: FieldPath) -> Iterator[Part]:
    text = get(value, field)
    if isinstance(text, str):
        yield Part((*path, field), text)


def _is_carrier(value: Any) -> bool:
    """Whether `value` is a tool's message or item, or carries content blocks."""
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple, set, frozenset)):
        return False
    if _is_plain_block(value):
        return False
    if _is_turn_of_results(value) or _is_tool_return(value) or _is_command(value) or _telling_field(value):
        return True
    kind = _kind(value)
    if kind == _SHELL_OUTPUT or _has_identity(value):
        return True
    if kind in _ITEMS:
        return isinstance(get(value, _HOLDERS[kind]), str) or _are_blocks(get(value, _HOLDERS[kind]))
    return not is_other_message(value) and _has_content(value)


def _is_plain_block(value: Any) -> bool:
    """Whether `value` is seen at once to be a block of text, as nearly all are."""
    if type(value) is not dict or "role" in value or "content" in value:
        return False
    kind = value.get("type")
    return type(kind) is str and kind in TEXT_BLOCKS


def _has_identity(value: Any) -> bool:
    """Whether `value` says whose result it is, or as MCP's whether the call failed: rows of data do not."""
    kind = _kind(value)
    content = get(value, _HOLDERS.get(kind, "content"))
    if content is None or isinstance(content, (bool, int, float)):
        return False
    may_be = kind in _ITEMS or not kind or bool(_words(value) & _TOOL_MESSAGES)
    if may_be and any(text_field(value, name) for name in _ID_FIELDS):
        return True
    is_result = not kind and isinstance(content, (list, tuple))
    return is_result and any(_has_field(value, name) for name in (*_ERROR_FIELDS, *_STRUCTURED_FIELDS))


def _has_field(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else get(value, name) is not None


def _has_content(value: Any) -> bool:
    content = get(value, "content")
    if isinstance(content, str):
        return bool(_words(value) & _TOOL_MESSAGES)
    return _kind(value) not in _OTHER_BLOCKS and _are_blocks(content)


def _is_turn_of_results(value: Any) -> bool:
    """Whether `value` is the message of a turn in which tools' results are sent."""
    if text_field(value, "role") not in _RESULT_ROLES:
        return False
    listed = [*_listed(get(value, "content")), *_listed(get(value, "parts"))]
    return any(_kind(item) == _TOOL_RESULT or _telling_field(item) for item in listed)


def _telling_field(value: Any) -> str:
    """The only field of Bedrock's and Gemini's results of a tool; empty for anything else."""
    field = "" if _kind(value) else keyed.telling_field(value)
    return field if field == keyed.TOOL_RESULT or field in keyed.RESPONSES else ""


def _is_signed(block: Any) -> bool:
    """Whether a provider refuses `block` with any change in it, as what a model thought."""
    return _kind(block) in _SIGNED or (
        isinstance(block, Mapping) and any(str(name).startswith("encrypted") for name in block)
    )


def _is_tool_return(value: Any) -> bool:
    return text_field(value, "kind") == "tool-return" and not isinstance(value, Mapping)


def _is_command(value: Any) -> bool:
    """Whether `value` is LangGraph's `Command`: its class's name, and what it writes to the state."""
    return type(value).__name__ == "Command" and hasattr(value, "update") and hasattr(value, "goto")


def _is_block(item: Any) -> bool:
    kind = _kind(item)
    if not kind:
        return bool(keyed.telling_field(item))
    if kind in TEXT_BLOCKS:
        return isinstance(get(item, "text"), str)
    if kind in _HOLDERS and isinstance(get(item, _HOLDERS[kind]), (str, list, tuple)):
        return True
    if not isinstance(item, Mapping) and kind in _OTHER_KINDS:
        return True
    found = [get(item, name) for name in _OTHER_BLOCKS.get(kind, ())]
    return any(each is not None and not isinstance(each, (list, tuple)) for each in found)


def _are_blocks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and is_blocks(value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _kind(value: Any) -> str:
    """The `type` of a block or item; of an object without one its `kind`, as pydantic-ai names it."""
    return text_field(value, "type") or ("" if isinstance(value, Mapping) else text_field(value, "kind"))


def _words(value: Any) -> set[str]:
    return {text_field(value, "type"), text_field(value, "role")}
