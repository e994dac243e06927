"""The arguments of a tool: described to a model as JSON Schema, and read leniently.

Models copy a handle with the punctuation around it, write modes in capitals, and numbers as they would in a
sentence. The meaning is clear in these cases, and an error would cost the agent a call.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import msgspec

from overspill import wire
from overspill.agent_tools.error_answers import InvalidArguments

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from msgspec import Struct
    from msgspec.structs import FieldInfo

T = TypeVar("T", bound="Struct")

_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_PUNCTUATION: Final = " \t\r\n\"'`“”‘’«»<>()[]{}.,;"  # noqa: RUF001  (quotes of every kind)
_CLOSING_PUNCTUATION: Final = "\"'`“”‘’«»>)]},; \t\r\n"  # noqa: RUF001
_HANDLE: Final = re.compile(rf"(?<![A-Za-z0-9]){wire.CAPTURE_ID.pattern}(?![A-Za-z0-9])")
_NUMBER: Final = re.compile(r"([+-]?[0-9][0-9,]{0,20})(?:\.0*)?")
_LONGEST: Final = 1_000
"""Characters of a text in which a handle is searched for."""


def argument(description: str, **bounds: Any) -> msgspec.Meta:
    """Describe a field of a request to a model.

        size: Annotated[int, argument("How many.", minimum=1)] = 5

    `bounds` are keywords of JSON Schema. They are not checked: each tool says what it makes of other values.
    """
    return msgspec.Meta(description=description, extra_json_schema=bounds)


def schema_of(request: type[Struct]) -> dict[str, Any]:
    """Return the schema for a provider's tool definition. A field that may be null may also be left out."""
    fields = msgspec.structs.fields(request)
    required = [field.name for field in fields if field.required]
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(field: FieldInfo) -> dict[str, Any]:
    field_type, meta = get_args(field.type)  # of Annotated
    json_types = [_TYPES[each] for each in (field_type, *get_args(field_type)) if each in _TYPES]
    default = {} if field.required or field.default in {None, ""} else {"default": field.default}
    return {"type": json_types[0], "description": meta.description, **default, **meta.extra_json_schema}


def without_punctuation(text: str) -> str:
    """Return a name without the punctuation around it."""
    return text.strip(_PUNCTUATION)


def cleaned(arguments: Mapping[str, Any], request_type: type[Struct]) -> dict[str, Any]:
    """Return the arguments for a request of this kind: no nulls, and plain numbers, modes and handles."""
    numbers = _numbers_of(request_type)
    return {
        name: _cleaned_value(name, value, numbers) if isinstance(value, str) else _as_text(name, value)
        for name, value in arguments.items()
        if value is not None
    }


@cache
def _numbers_of(request_type: type[Struct]) -> frozenset[str]:
    """Return the names of the arguments that are numbers."""
    properties = schema_of(request_type)["properties"]
    return frozenset(name for name, each in properties.items() if each["type"] in {"integer", "number"})


def _as_text(name: str, value: Any) -> Any:
    """Return a number that stands for a text as one: the cursor of a wait is a number's text."""
    return str(value) if name == "cursor" and type(value) is int else value


def _cleaned_value(name: str, text: str, numbers: Collection[str]) -> str | int:
    if name == "mode":
        return text.strip(_PUNCTUATION).lower()
    if name in numbers:
        found = _NUMBER.fullmatch(text.strip(_PUNCTUATION))
        return text if found is None else int(found[1].replace(",", ""))
    return handle_in(text) if name == "capture" else text


def request_of(request_type: type[T], arguments: Mapping[str, Any], tool: str) -> T:
    """Return the request of a tool from a model's arguments. Raises `InvalidArguments`."""
    try:
        return msgspec.convert(cleaned(arguments, request_type), request_type, strict=False)
    except msgspec.ValidationError as error:
        allowed = ", ".join(field.name for field in msgspec.structs.fields(request_type))
        raise InvalidArguments(f"{error}; {tool} takes {allowed}".replace("`$.", "`")) from error


def handle_in(text: str) -> str:
    """Return the capture id or `call:` reference in `text`. If there is none, return `text` stripped."""
    text = text.strip()
    if not text.startswith(wire.CALL_PREFIX) and (found := _HANDLE.search(text[:_LONGEST].lower())):
        return found[0]
    inner = text.lstrip(_PUNCTUATION)
    if inner.startswith(wire.CALL_PREFIX) and inner != text:
        return inner.rstrip(_CLOSING_PUNCTUATION)
    return text
