"""The JSON Schema of a tool's arguments, made from the request that they become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

if TYPE_CHECKING:
    from msgspec import Struct
    from msgspec.structs import FieldInfo

_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def argument(description: str, **bounds: Any) -> msgspec.Meta:
    """Describe a field of a request to a model.

        size: Annotated[int, argument("How many.", minimum=1)] = 5

    `bounds` are keywords of JSON Schema. They are not checked: each tool says what it makes of other values.
    """
    return msgspec.Meta(description=description, extra_json_schema=bounds)


def schema_of(request: type[Struct]) -> dict[str, Any]:
    """Return the schema for a provider's tool definition. What may be null may be left out instead."""
    fields = msgspec.structs.fields(request)
    required = [field.name for field in fields if field.required]
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(field: FieldInfo) -> dict[str, Any]:
    kind, meta = get_args(field.type)  # of Annotated
    known = [_TYPES[each] for each in (kind, *get_args(kind)) if each in _TYPES]
    default = {} if field.required or field.default in {None, ""} else {"default": field.default}
    return {"type": known[0], "description": meta.description, **default, **meta.extra_json_schema}
