"""Makes room for a notice in output schemas.

If a schema allows no further entry, nothing can say what was cut. A schema that wants lists or texts to be
long, or whole, would keep a result whole, however large. So an object may have only the notice instead of the
required entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.shapes.short_copy import ENTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENTRY: Final = {"type": "string", "description": "Says what was cut from this result, and how to read on."}
_NOTICE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {ENTRY_NAME: _ENTRY},
    "required": [ENTRY_NAME],
}
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
"""The keywords with which a schema refuses entries that it does not name."""
_REFUSING: Final = frozenset({
    *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"),
    *("propertyNames", "patternProperties", "minProperties", "maxProperties"),
    *("dependentSchemas", "dependencies"),
})  # fmt: skip
"""The keywords with which a schema may refuse an entry that it names."""
_MIN_SIZES: Final = ("minItems", "minLength", "minProperties")
_FEW: Final = 20
_SHORT_FORMATS: Final = frozenset(
    ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
"""The formats whose texts are never long."""
_SHORT_CHARS: Final = 4_000
"""A text that may have no more is never long: addresses of Pydantic may have 2,083."""
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""The keywords with schemas by name. The names may be keywords of schemas too."""
_DATA: Final = frozenset({"const", "enum", "default", "example", "examples"})
_SHARED: Final = frozenset({"$schema", "$id", "$defs", "definitions", "title", "description"})
"""Keywords that stay at the root of a schema that is put into another, as keywords of others (`x-…`) do."""
_INNER: Final = "#/anyOf/0"
"""The place of a schema that is put into another."""


def with_room(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema so that a notice may stand in a result: the same one if it allows that."""
    named = schema.get("properties", {})
    is_closed = any(schema.get(word, True) is not True for word in _CLOSING)
    if not isinstance(named, dict):  # PHP writes [] for none
        named = {}
    is_table = is_closed and not named  # clients in Python make a dict of it, but a class of named entries
    if schema.get("type", "object") != "object" or is_table or not _REFUSING.isdisjoint(schema):
        return _or_notice(schema)
    roomy = schema
    if is_closed and ENTRY_NAME not in named:
        roomy = {**schema, "properties": {**named, ENTRY_NAME: _ENTRY}}
    may_stay_long = wants_length(schema) or _has_any(schema, _is_whole_or_nothing)
    return _without_required(roomy) if "required" in schema and may_stay_long else roomy


def _without_required(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that may have a notice in the place of what it requires."""
    others = {word: value for word, value in schema.items() if word != "required"}
    either = {"anyOf": [{"required": schema["required"]}, {"required": [ENTRY_NAME]}]}
    return {**others, "allOf": [either]}


def _or_notice(schema: dict[str, Any]) -> dict[str, Any]:
    moved = _with_inner_references(schema)
    shared = {word: value for word, value in moved.items() if word in _SHARED or word.startswith("x-")}
    own = {word: value for word, value in moved.items() if word not in shared}
    if own.get("type") == "object":
        shared["type"] = "object"
    return {**shared, "anyOf": [own, _NOTICE]}


def _with_inner_references(value: Any) -> Any:
    """Return a schema whose references by place find what is put into another schema with it."""
    if isinstance(value, list):
        return [_with_inner_references(each) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {word: _with_inner_references(each) for word, each in value.items()}
    named = value.get("$ref")
    if isinstance(named, str) and (named == "#" or named.startswith("#/")):
        first = named.removeprefix("#").removeprefix("/").partition("/")[0]
        moved["$ref"] = named if first in _SHARED else _INNER + named[1:]
    return moved


def wants_length(schema: Any) -> bool:
    """Return whether a schema may want a value that it describes to be long."""
    return _has_any(schema, _is_long)


def _is_long(schema: dict[str, Any]) -> bool:
    sizes = [schema[word] for word in _MIN_SIZES if isinstance(schema.get(word), int | float)]
    return max(sizes, default=0) > _FEW


def _is_whole_or_nothing(schema: dict[str, Any]) -> bool:
    """Return whether a value of this schema may be long, and be another one if anything is cut from it."""
    if _may_be(schema, "array") and isinstance(schema.get("contains"), dict):
        return True
    max_length = schema.get("maxLength")
    if not _may_be(schema, "string") or (isinstance(max_length, int | float) and max_length <= _SHORT_CHARS):
        return False
    form = schema.get("format")
    return form not in _SHORT_FORMATS if isinstance(form, str) else isinstance(schema.get("pattern"), str)


def _may_be(schema: dict[str, Any], kind: str) -> bool:
    kinds = schema.get("type", kind)
    return kind in kinds if isinstance(kinds, list) else kinds == kind


def _has_any(schema: Any, predicate: Callable[[dict[str, Any]], bool]) -> bool:
    if isinstance(schema, list):
        return any(_has_any(each, predicate) for each in schema)
    if not isinstance(schema, dict):
        return False
    return predicate(schema) or any(_has_any(each, predicate) for each in _inner(schema))


def _inner(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the values in a schema that may be schemas, or lists of them."""
    for word, value in schema.items():
        if word in _NAMED and isinstance(value, dict):
            yield from value.values()
        elif word not in _DATA:
            yield value
