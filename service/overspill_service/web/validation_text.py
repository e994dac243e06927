"""Says what is wrong with a query or a JSON body: msgspec's words, and which values are allowed. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Struct, ValidationError

_PLACE: Final = re.compile(r" - at `(\$[^`]*)`$")
_NAME: Final = re.compile(r"\.([^.\[\]]+)")
_WRONG_CHOICE: Final = "Invalid enum value"
_IN_A_QUERY: Final = (
    ("Expected `bool`, got `str`", "Expected true or false"),
    ("Expected `int`, got `str`", "Expected a whole number"),
    ("Expected `float`, got `str`", "Expected a number"),
    ("Object missing required field", "Missing the parameter"),
    (
        "Invalid RFC3339 encoded datetime",
        "Expected a time such as 2026-11-23T06:00:00Z, with %2B for a plus sign",
    ),
    ("`$.", "`"),
)
"""Messages of msgspec, and their wording for a URL, where each value is a text and a field has no `$`."""


def query_text(error: ValidationError, kind: type[Struct]) -> str:
    """Return what is wrong with a query that should be a `kind`."""
    text = body_text(error, kind)
    for said, meant in _IN_A_QUERY:
        text = text.replace(said, meant)
    return text


def body_text(error: Exception, kind: type[Any]) -> str:
    """Return what is wrong with JSON that should be a `kind`. For a wrong choice, name the right ones."""
    said = str(error)
    place = _PLACE.search(said)
    if place is None or not said.startswith(_WRONG_CHOICE):
        return said
    choices = list(_choices(_type_at(inspect.type_info(kind), _NAME.findall(place[1]))))
    return f"{said}: use one of {', '.join(choices)}" if choices else said


def _type_at(kind: inspect.Type | None, names: list[str]) -> inspect.Type | None:
    """Return the type of the field that `names` lead to, through lists and optional values. None: unknown."""
    for name in names:
        structs = (each for each in _parts(kind) if isinstance(each, inspect.StructType))
        fields = (field for struct in structs for field in struct.fields)
        kind = next((field.type for field in fields if field.encode_name == name), None)
    return kind


def _parts(kind: inspect.Type | None) -> Iterator[inspect.Type]:
    """Yield the type itself, or those that a union or a list is made of."""
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _parts(each)
    elif isinstance(kind, inspect.CollectionType):
        yield from _parts(kind.item_type)
    elif kind is not None:
        yield kind


def _choices(kind: inspect.Type | None) -> Iterator[str]:
    for each in _parts(kind):
        if isinstance(each, inspect.EnumType):
            yield from (str(member.value) for member in each.cls)
        elif isinstance(each, inspect.LiteralType):
            yield from map(str, each.values)
