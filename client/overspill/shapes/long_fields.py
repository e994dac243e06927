"""Find the long fields of a tool's result beside its texts, which no protocol keeps from a model.

Frameworks show a model the whole of a dict or an object that a tool made: as its JSON, or as it prints. Only
results in a protocol's own form have fields that are for programs alone:

- of MCP, `_meta` and `annotations`, in a result that is known to be a server's;
- of a framework's own classes, the fields in `_FOR_PROGRAMS`: frameworks send a model the content of their
  messages, and keep these. A tool's own class or dict may have fields of these names too: those are shown.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from overspill.shapes import block_types as types
from overspill.shapes.carriers import is_carrier, is_command
from overspill.shapes.data_view import size_within
from overspill.shapes.fields import FieldPath, Part, is_text, parts_of
from overspill.shapes.heaviest_parts import is_id
from overspill.shapes.pictures import DATA_FIELDS, is_payload
from overspill.shapes.sender import Sender
from overspill.text.rendering import is_plain_container, plain_stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONG_BYTES: Final = 1_000
_MAX_BESIDE: Final = 100_000
"""Short fields that are larger all together are data."""
_FEW_VALUES: Final = 2_000
_MAX_ITEMS: Final = 1_000_000
_MEDIA_DEPTH: Final = 3
"""A block, its source, and the data of that."""
_FOR_MCP_CLIENTS: Final = frozenset({"_meta", "annotations"})
_FOR_PROGRAMS: Final = frozenset(
    {"_meta", "meta", "metadata", "annotations", "artifact", "additional_kwargs", "response_metadata"}
    | {"usage_metadata", "raw_input", "raw_output", "raw_representation", "additional_properties"}
    | {"extras", "_content_field"}
)
_FRAMEWORKS: Final = frozenset(
    {"agent_framework", "agents", "agno", "anthropic", "autogen_core", "claude_agent_sdk", "copilot"}
    | {"crewai", "fastmcp", "google", "haystack", "langchain_core", "langgraph", "llama_index", "mcp"}
    | {"mcp_types", "openai", "pydantic_ai", "strands"}
)
"""Top-level packages whose classes are those of a protocol."""
_SHORT_CHARS: Final = 200
_ADDRESSES: Final = frozenset({"uri", "url"})
_MAX_ADDRESS_CHARS: Final = 4_096
_MEDIA_TYPES: Final = (types.OTHER_BLOCKS.keys() | types.OTHER_KINDS) - {
    *("resource_link", "search_result", "tool_reference", "refusal"),
}
_DATA_OF_TYPE: Final = {
    types.RESOURCE: frozenset({types.RESOURCE}),
    types.DOCUMENT: frozenset({"source"}),
    "text": frozenset[str](),
}
"""The fields with data, or with what holds it, of these blocks and of a source that is a text."""
_DATA_OF_RESOURCE: Final = frozenset({"blob"})
_TEXT_BLOCK: Final = frozenset({"type", "text"})
_PLAIN: Final = frozenset({dict, list, tuple})
_Tree: TypeAlias = dict[Any, "_Tree"]
"""The steps of paths. Where a path ends, there is nothing below."""


def with_long_fields(result: Any, parts: list[Part], sender: Sender) -> list[Part] | None:
    """Return `parts` and the long fields of `result` beside them; None if there is too much in short ones."""
    if _are_bare_texts(result):
        return parts
    stats = plain_stats(result, _FEW_VALUES) if is_plain_container(result) else None
    texts = sum(len(part.value) for part in parts if type(part.value) is str)
    if stats is not None and stats.chars - texts <= _LONG_BYTES:
        return parts
    tree: _Tree = {}
    for part in parts:
        _add(tree, part.path)
    finder = _Finder(_FOR_MCP_CLIENTS if sender is Sender.MCP_SERVER else frozenset())
    found, beside = list(parts), 0
    for each in finder.in_result(result, tree):
        if isinstance(each, Part):
            found.append(each)
        else:
            beside += each
        if beside > _MAX_BESIDE:
            return None
    return found


def _are_bare_texts(result: Any) -> bool:
    """Return whether content blocks have a text and nothing else, as nearly all have."""
    return type(result) is list and all(
        type(block) is dict and block.keys() == _TEXT_BLOCK and block["type"] in types.TEXT_BLOCKS
        for block in result
    )


def _add(tree: _Tree, path: FieldPath) -> None:
    for step in path:
        tree = tree.setdefault(step, {})


class _Finder:
    """Finds what is beside parts in a value: long fields, and how many bytes there are in short ones."""

    def __init__(self, unseen: frozenset[str]) -> None:
        self._unseen = unseen

    def in_result(self, result: Any, tree: _Tree) -> Iterator[Part | int]:
        """Yield what is beside the parts in `tree`, of a whole result."""
        return self.beside(result, tree, ()) if tree or not _is_media(result) else self._in_media(result, ())

    def beside(self, value: Any, tree: _Tree, path: FieldPath) -> Iterator[Part | int]:
        """Yield what is beside the parts in `tree`, of a value that holds some of them."""
        kind: Any = type(value)
        if is_command(value) and is_of_framework(kind):
            return
        unseen = self._unseen_in(value)
        for step, field in _fields_of(value):
            if step in tree:
                if tree[step]:
                    yield from self.beside(field, tree[step], (*path, step))
            elif type(field) is str and len(field) <= _SHORT_CHARS:
                yield len(field)
            elif field is not None and step not in unseen:
                yield from self._field(step, field, (*path, step))
            if type(step) is str and len(step) > _SHORT_CHARS:
                yield len(step)

    def _field(self, step: Any, field: Any, path: FieldPath) -> Iterator[Part | int]:
        if _is_media(field):
            yield from self._in_media(field, path)
        elif not is_id(step, field) and not _is_address(step, field):
            found = _sized(field, path)
            yield from (
                self.beside(field, {}, path) if isinstance(found, Part) and _has_blocks(found) else [found]
            )

    def _in_media(self, block: Any, path: FieldPath, depth: int = _MEDIA_DEPTH) -> Iterator[Part | int]:
        """Yield what is beside the data of a picture, a sound, or a file."""
        unseen, data_fields = self._unseen_in(block), _data_fields(block, path)
        for name, field in _fields_of(block):
            if name in unseen or is_id(name, field) or _is_address(name, field):
                continue
            if name not in data_fields or not depth:
                yield _sized(field, (*path, name))
            elif is_text(field):
                yield 0 if is_payload(name, field) else _sized(field, (*path, name))
            else:
                yield from self._in_media(field, (*path, name), depth - 1)
            yield len(name) if type(name) is str else 0

    def _unseen_in(self, holder: Any) -> frozenset[str]:
        kind: Any = type(holder)
        return self._unseen if kind in _PLAIN or not is_of_framework(kind) else _FOR_PROGRAMS


def _fields_of(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the fields of a record, dict or list; of an object of an unknown class, its attributes."""
    kind: Any = type(value)
    attributes: dict[str, Any] = getattr(value, "__dict__", {})
    if kind is dict:
        return value.items()  # type: ignore[no-any-return]
    if kind in _PLAIN:
        return enumerate(value)
    if attributes and is_of_framework(kind) and not getattr(value, "__pydantic_extra__", None):
        return attributes.items()
    found = parts_of(value, _MAX_ITEMS)
    return attributes.items() if found is None else found


def _sized(value: Any, path: FieldPath) -> Part | int:
    size = size_within(value, _LONG_BYTES)
    return Part(path, value) if size > _LONG_BYTES else size


def _data_fields(holder: Any, path: FieldPath) -> frozenset[str]:
    """Return the fields of a block, or of what holds its data, that are its data or hold that."""
    type_ = types.type_of(holder)
    if not type_ and path[-1:] == (types.RESOURCE,):
        return _DATA_OF_RESOURCE
    return _DATA_OF_TYPE.get(type_, DATA_FIELDS)


def _has_blocks(part: Part) -> bool:
    return len(part.path) < types.MAX_DEPTH and (types.are_blocks(part.value) or is_carrier(part.value))


def _is_address(step: Any, field: Any) -> bool:
    return step in _ADDRESSES and isinstance(field, str) and len(field) <= _MAX_ADDRESS_CHARS


def _is_media(value: Any) -> bool:
    type_ = types.type_of(value)
    return (
        type_ in _MEDIA_TYPES if type_ else types.telling_field(value) in types.KEYED_MEDIA
    ) and types.is_block(value)


@lru_cache(maxsize=256)
def is_of_framework(kind: type[Any]) -> bool:
    """Return whether a class is one of a framework's, or derived from one."""
    return any(each.__module__.partition(".")[0] in _FRAMEWORKS for each in type.mro(kind))
