"""Find where text is in the results, messages and content blocks of agent frameworks.

A part is a text, or structured content, with the path of field names and positions that leads to it.
`block_types` says how values are distinguished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from overspill.shapes import block_types as types
from overspill.shapes import extra_fields
from overspill.shapes.block_types import TEXT_FIELDS, are_blocks, is_block, listed, type_of
from overspill.shapes.carriers import (
    STRUCTURED_FIELDS,
    has_identity,
    is_carrier,
    is_command,
    is_other_message,
    is_tool_return,
    is_turn_of_results,
)
from overspill.shapes.fields import FieldPath, Part, get, text_field
from overspill.shapes.long_fields import with_long_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.shapes.sender import Sender

_MESSAGES: Final = "messages"
_PAIR: Final = 2
_MAX_PARTS: Final = 1_000_000


_PartOrSize: TypeAlias = Part | int
"""A part, or how many characters there are besides parts."""


def parts_with_text(result: Any) -> list[Part] | None:
    """Return the parts of `result`; None if it has none of the known shapes.

    Blocks with many other fields are data, not blocks: None as well.
    """
    if isinstance(result, (list, tuple)):
        is_known = are_blocks(result) or (bool(result) and all(is_carrier(item) for item in result))
        found = _in_items(result, ()) if is_known else None
    else:
        found = _in_one(result)
    return None if found is None else _listed(found)


def parts_of_tool(result: Any, sender: Sender) -> list[Part] | None:
    """Return the parts of a tool's result. Nothing in it is a message of others, whatever it looks like.

    If it looks like a message, the parts are those of its content blocks. Other long fields are parts too.
    """
    if is_other_message(result) or is_turn_of_results(result):
        found = _in_message(result)
    else:
        found = parts_with_text(result)
    if found is None or any(map(is_turn_of_results, listed(result))):
        return None
    return with_long_fields(result, found, sender)


def _in_message(message: Any) -> list[Part] | None:
    held = next((name for name in ("content", "parts") if are_blocks(get(message, name))), None)
    if held is None:
        return parts_with_text(message) if has_identity(message) and not is_turn_of_results(message) else None
    if isinstance(message, tuple):  # its fields have numbers
        return None
    return _listed(_in_any(get(message, held), (held,)))


def _listed(found: Iterator[_PartOrSize]) -> list[Part] | None:
    parts: list[Part] = []
    extra_chars = 0
    for each in found:
        if isinstance(each, Part):
            parts.append(each)
        else:
            extra_chars += each
        if extra_chars > extra_fields.MAX_EXTRA_CHARS or len(parts) > _MAX_PARTS:
            return None
    return parts


def _in_one(value: Any) -> Iterator[_PartOrSize] | None:
    if is_carrier(value):
        return _in_carrier(value, ())
    may_be_alone = not isinstance(value, Mapping) or text_field(value, "type") in types.SINGLE_BLOCKS
    return _in_block(value, ()) if may_be_alone and is_block(value) else None


def _in_items(items: Sequence[Any], path: FieldPath) -> Iterator[_PartOrSize]:
    for at, item in enumerate(items):
        yield from _in_any(item, (*path, at))


def _in_any(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of a text, of blocks, or of one block."""
    if isinstance(value, str):
        yield Part(path, value)
    elif len(path) > types.MAX_DEPTH:
        return
    elif isinstance(value, (list, tuple)):
        yield from _in_items(value, path)
    elif is_carrier(value):
        yield from _in_carrier(value, path)
    else:
        yield from _in_block(value, path)


def _in_block(block: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    type_ = type_of(block)
    if not type_:
        yield from _in_keyed(block, types.telling_field(block), path)
        return
    yield extra_fields.of_block(block, type_)
    if type_ in TEXT_FIELDS:
        yield from _in_any(get(block, TEXT_FIELDS[type_]), (*path, TEXT_FIELDS[type_]))
    elif type_ == types.RESOURCE:
        yield extra_fields.of_resource(get(block, types.RESOURCE))
        yield from _text_at(get(block, types.RESOURCE), "text", (*path, types.RESOURCE))
    elif type_ == types.DOCUMENT:
        yield from _in_source(get(block, "source"), (*path, "source"))
    elif type_ == types.SHELL_OUTPUT:
        yield from _in_shell_outputs(get(block, "output"), (*path, "output"))
    else:
        yield extra_fields.NO_TEXT


def _in_source(source: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of a document's source, which is a text or blocks."""
    field = {"text": "data", "content": "content"}.get(text_field(source, "type"))
    if field is not None:
        yield from _in_any(get(source, field), (*path, field))


def _in_shell_outputs(outputs: Any, path: FieldPath) -> Iterator[Part]:
    for at, output in enumerate(listed(outputs)):
        for stream in ("stdout", "stderr"):
            yield from _text_at(output, stream, (*path, at))


def _in_keyed(block: Any, field: str, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of a block that one `field` identifies."""
    held = get(block, field)
    if field in {types.KEYED_TEXT, types.KEYED_JSON}:
        yield Part((*path, field), held)
    elif field == types.KEYED_TOOL_RESULT:
        yield from _in_carrier(held, (*path, field))
    elif field in types.KEYED_RESPONSES:
        if (response := get(held, "response")) is not None:  # Gemini: what a function returned is an object
            yield Part((*path, field, "response"), response)
    else:
        yield extra_fields.NO_TEXT


def _text_at(value: Any, field: str, path: FieldPath) -> Iterator[Part]:
    text = get(value, field)
    if isinstance(text, str):
        yield Part((*path, field), text)


def _in_carrier(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    type_ = type_of(value)
    if is_tool_return(value):
        yield from _in_tool_return(value, path)
    elif is_command(value):
        yield from _in_update(get(value, "update"), (*path, "update"))
    elif is_turn_of_results(value):
        yield from _in_own_items(get(value, "content"), (*path, "content"))
        yield from _in_own_items(get(value, "parts"), (*path, "parts"))
    elif field := types.result_field(value):
        yield from _in_keyed(value, field, path)
    elif type_ == types.SHELL_OUTPUT:
        yield from _in_block(value, path)
    elif has_identity(value):
        yield from _in_result(value, TEXT_FIELDS.get(type_, "content"), path)
    elif type_ in types.ITEMS:
        yield from _in_block(value, path)
    else:
        yield extra_fields.of_result(value)
        yield from _in_any(get(value, "content"), (*path, "content"))
        yield from _in_structured(value, path)


def _in_result(value: Any, field: str, path: FieldPath) -> Iterator[Part]:
    """Yield the parts of a value that is certainly a tool's result: everything but blocks is data."""
    yield from _in_content(get(value, field), (*path, field))
    yield from _in_structured(value, path)
    for name in extra_fields.long_extra_fields(value):
        if isinstance(value[name], (str, dict, list)) and name != field:
            yield Part((*path, name), value[name])


def _in_structured(value: Any, path: FieldPath) -> Iterator[Part]:
    for name in STRUCTURED_FIELDS:
        if (structured := get(value, name)) is not None:
            yield Part((*path, name), structured)


def _in_content(content: Any, path: FieldPath) -> Iterator[Part]:
    if isinstance(content, (list, tuple)):
        for at, item in enumerate(content):
            yield from _in_item(item, (*path, at))
    elif _holds_text(content):
        yield Part(path, content)


def _in_item(item: Any, path: FieldPath) -> Iterator[Part]:
    if isinstance(item, str) or is_turn_of_results(item):
        yield Part(path, item)
    elif types.is_signed(item):
        return
    elif is_carrier(item) or is_block(item):
        found = list(_in_any(item, path))
        if sum(each for each in found if isinstance(each, int)) <= extra_fields.MAX_EXTRA_CHARS:
            yield from (each for each in found if isinstance(each, Part))
        else:
            yield Part(path, item)
    elif _holds_text(item):
        yield Part(path, item)


def _holds_text(value: Any) -> bool:
    return value is not None and not isinstance(value, (bool, int, float))


def _in_update(update: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of the tools' messages that a LangGraph command writes to the state, and no others."""
    if isinstance(update, (list, tuple)):
        for at, pair in enumerate(update):
            if isinstance(pair, tuple) and len(pair) == _PAIR and pair[0] == _MESSAGES:
                yield from _in_own_items(pair[1], (*path, at, 1))
    else:
        yield from _in_own_items(get(update, _MESSAGES), (*path, _MESSAGES))


def _in_own_items(items: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of tools' messages in a list that has others too, or of one message alone."""
    if not isinstance(items, (list, tuple)):
        if is_carrier(items):
            yield from _in_carrier(items, path)
        return
    for at, item in enumerate(items):
        if is_carrier(item):
            yield from _in_carrier(item, (*path, at))


def _in_tool_return(value: Any, path: FieldPath) -> Iterator[_PartOrSize]:
    """Yield the parts of pydantic-ai's `ToolReturn`: a value for the model, and user content behind it."""
    returned = get(value, "return_value")
    if isinstance(returned, str) or are_blocks(returned):
        yield from _in_any(returned, (*path, "return_value"))
    elif _holds_text(returned):
        yield Part((*path, "return_value"), returned)
    yield from _in_any(get(value, "content"), (*path, "content"))
