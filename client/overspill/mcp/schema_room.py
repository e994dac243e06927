"""Room for a notice in output schemas: one that allows no further entry could say nothing of what was cut."""

from __future__ import annotations

from typing import Any, Final

from overspill.shapes.short_copy import ENTRY_NAME

_ENTRY: Final = {"type": "string", "description": "Says what was cut from this result, and how to read on."}
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties")
"""By what a schema refuses entries that it does not name."""


def with_room(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object so that it allows an entry for a notice: the same one if it does."""
    named = schema.get("properties", {})
    if all(schema.get(word, True) is True for word in _CLOSING) or not isinstance(named, dict):
        return schema
    return schema if ENTRY_NAME in named else {**schema, "properties": {**named, ENTRY_NAME: _ENTRY}}
