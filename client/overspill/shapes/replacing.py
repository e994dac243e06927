"""Replace values in results and messages, given the paths that lead to them, and all texts of plain data."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes import block_types as types
from overspill.shapes.field_copies import with_fields, with_items
from overspill.shapes.fields import FieldPath, get, is_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BLOCK_TEXTS: Final = ((), ("text",), (types.RESOURCE, "text"), ("source", "data"))


class _Removed(Enum):
    """The mark for a part that is removed."""

    REMOVED = "removed"


REMOVED: Final = _Removed.REMOVED
"""Instead of a text: its block is removed from its list."""


def is_removable(path: FieldPath) -> bool:
    """Return whether the text at `path` is all that its block in a list is there for."""
    for at in range(len(path) - 1, -1, -1):
        if isinstance(path[at], int):
            return path[at + 1 :] in _BLOCK_TEXTS
    return False


def with_values(value: Any, new: Mapping[FieldPath, Any]) -> Any:
    """Return a copy of `value`, of the same class, with other values at these paths.

    `REMOVED` takes a block out of its list, None takes a field away. Raises `Unchangeable`.
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


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return plain data with `change` applied to each text in it, except for the names of entries."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: with_texts(each, change) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(with_texts(each, change) for each in value)
    return value
