"""Reads the fields and items of dicts, lists, records and objects of unknown classes.

Such objects may raise or lie. So reading a field never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from overspill.text.rendering import COLLECTIONS, TEXTS, field_names, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

FieldPath: TypeAlias = tuple[Any, ...]
"""Keys, field names and positions that lead from a value to a part of it."""


class Part(NamedTuple):
    """A part of a value, and the path that leads to it."""

    path: FieldPath
    value: Any


_LONG_NAMES_CHARS: Final = 8_000
_NUMBERS: Final = frozenset({int, float, bool, type(None)})


def is_a(value: Any, kinds: Any) -> bool:
    """Do the same as `isinstance`; if a foreign class raises, ask its true type."""
    try:
        return isinstance(value, kinds)
    except Exception:  # noqa: BLE001  (a foreign `__class__` or metaclass: whatever it raises)
        return any(kind in type.mro(type(value)) for kind in (kinds if type(kinds) is tuple else (kinds,)))


def get(value: Any, name: Any) -> Any:
    """Return a field; None if there is none or reading it raises."""
    if type(value) is dict:
        return value.get(name)
    try:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:  # noqa: BLE001  (a foreign property: whatever it raises)
        return None


def text_field(value: Any, name: str) -> str:
    """Return a field if it is text, else an empty string."""
    found = get(value, name)
    return found if issubclass(type(found), str) else ""


def is_text(value: Any) -> bool:
    """Return whether `value` is a text, or bytes, as programs print them."""
    return is_a(value, (str, bytes, bytearray))


def is_sequence(value: Any) -> bool:
    """Return whether `value` is a list, tuple, set or the like; texts and bytes are not."""
    return is_a(value, COLLECTIONS) and not is_a(value, TEXTS)


def as_data(value: Any) -> Any:
    """Return the JSON value for a value whose class can have no other."""
    if is_a(value, Enum):
        return value.value
    return printable(value) if is_a(value, (Decimal, PurePath, BaseException)) else value


def names_of(value: Any) -> list[str] | None:
    """Return the field names of a record; None for other values.

    Records are msgspec structs, dataclasses, attrs classes, pydantic models, and objects that print as their
    attributes.
    """
    if (names := field_names(value)) is not None:
        return names
    fields = getattr(type(value), "model_fields", None)
    if isinstance(fields, Mapping):
        return [*fields, *(getattr(value, "__pydantic_extra__", None) or ())]
    return None


def has_long_names(names: Iterable[Any]) -> bool:
    """Return whether the names of entries are long texts themselves, which a short copy has no room for."""
    chars = 0
    for name in names:
        if type(name) not in _NUMBERS:
            chars += len(name if type(name) is str else printable(name))
            if chars > _LONG_NAMES_CHARS:
                return True
    return False


def parts_of(value: Any, limit: int) -> list[tuple[Any, Any]] | None:
    """Return the parts of a container or record as pairs of step and part.

    None for single values, and for more than `limit` parts. Raises whatever the value's own methods raise.
    """
    if is_a(value, Mapping):
        return None if len(value) > limit else [(key, value[key]) for key in islice(value, limit)]
    if is_sequence(value):
        return None if len(value) > limit else list(enumerate(islice(value, limit)))
    names = names_of(value)
    if names is None or is_a(value, type):
        return None
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
