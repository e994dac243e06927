"""Room for a notice in output schemas: one that allows no further entry could say nothing of what was cut.

A schema that wants lists or texts to be long would keep a result whole, however large. So an object may have
the notice alone in the place of what the schema requires.
"""

from __future__ import annotations

from typing import Any, Final

from overspill.shapes.short_copy import ENTRY_NAME

_ENTRY: Final = {"type": "string", "description": "Says what was cut from this result, and how to read on."}
_NOTICE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {ENTRY_NAME: _ENTRY},
    "required": [ENTRY_NAME],
}
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
"""By what a schema refuses entries that it does not name."""
_LEAST_SIZES: Final = ("minItems", "minLength", "minProperties")
_FEW: Final = 20
_SHARED: Final[tuple[str, ...]] = ("$schema", "$id", "$defs", "definitions", "type")
"""What stays at the root of a schema that is put into another."""


def with_room(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema so that a notice may stand in a result: the same one if it allows that."""
    named = schema.get("properties")
    if not isinstance(named, dict):
        return _or_notice(schema) if wants_length(schema) else schema
    roomy = schema
    if ENTRY_NAME not in named and any(schema.get(word, True) is not True for word in _CLOSING):
        roomy = {**schema, "properties": {**named, ENTRY_NAME: _ENTRY}}
    return _without_required(roomy) if "required" in schema and wants_length(schema) else roomy


def _without_required(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that may have a notice in the place of what it requires."""
    others = {word: value for word, value in schema.items() if word != "required"}
    either = {"anyOf": [{"required": schema["required"]}, {"required": [ENTRY_NAME]}]}
    return {**others, "allOf": [*schema.get("allOf", []), either]}


def _or_notice(schema: dict[str, Any]) -> dict[str, Any]:
    shared: dict[str, Any] = {word: schema[word] for word in _SHARED if word in schema}
    if shared.get("type") != "object":
        shared.pop("type", None)
    own = {word: value for word, value in schema.items() if word == "type" or word not in _SHARED}
    return {**shared, "anyOf": [own, _NOTICE]}


def wants_length(schema: Any) -> bool:
    """Return whether a schema may want a value that it describes to be long."""
    if isinstance(schema, list):
        return any(map(wants_length, schema))
    if not isinstance(schema, dict):
        return False
    sizes = [schema[word] for word in _LEAST_SIZES if isinstance(schema.get(word), int | float)]
    return max(sizes, default=0) > _FEW or any(map(wants_length, schema.values()))
