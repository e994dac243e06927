"""Copies values of unknown classes with other fields, items or text.

Such values may raise, lie or be read-only. So each copy is checked: it has the class of its original, and it
holds the new values.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import UserDict, UserList, deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overspill.shapes.fields import get, is_a

if TYPE_CHECKING:
    from collections.abc import Callable

_BUILT_IN: Final[frozenset[type]] = frozenset({list, tuple, set, frozenset})
_VIEWS: Final[Mapping[type, Callable[[list[Any]], Any]]] = {
    type({}.keys()): lambda items: dict.fromkeys(items).keys(),
    type({}.values()): lambda items: dict(enumerate(items)).values(),
    type({}.items()): lambda items: dict(items).items(),
}


class Unchangeable(Exception):
    """No copy of the value with the other parts could be made."""


def with_fields(value: Any, fields: Mapping[Any, Any]) -> Any:
    """Return a copy with other `fields`. A dict loses the fields that become None. Raises `Unchangeable`."""
    return _checked_copy(
        value,
        lambda: _copied(value, dict(fields)),
        lambda copied: all(_is_same(get(copied, name), new) for name, new in fields.items()),
    )


def with_items(value: Any, items: list[Any]) -> Any:
    """Return a list, tuple, set or the like of the same class with other `items`. Raises `Unchangeable`."""
    kind = type(value)
    if kind in _BUILT_IN:
        return kind(items)
    return _checked_copy(
        value,
        lambda: _VIEWS[kind](items) if kind in _VIEWS else _refilled(value, items),
        lambda copied: len(copied) == len(items) and _are_same(copied, items),
    )


def with_text(value: Any, text: str) -> Any:
    """Return `text` in the class of `value`, which is a text or bytes. Raises `Unchangeable`.

    An enum can have no other members, so a member becomes a plain text or plain bytes.
    """
    kind = type(value)
    if kind is str:
        return text
    data = text.encode("utf-8", "replace")
    if kind in {bytes, bytearray, memoryview}:
        return kind(data)
    for base, content in ((str, text), (bytes, data)):
        if issubclass(kind, base):
            return content if issubclass(kind, Enum) else _of_subclass(base, value, content)
    raise Unchangeable(kind.__name__)


def _of_subclass(base: Any, value: Any, content: Any) -> Any:
    """Return `content` in the class of `value`. Only NumPy's own method makes texts of its classes."""
    kind = type(value)
    made = _checked_copy(
        value,
        lambda: _first_that_works((base.__new__, kind.__new__), kind, content),
        lambda made: base.__eq__(made, content),
    )
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


def _copied(value: Any, fields: dict[Any, Any]) -> Any:
    if isinstance(value, Mapping):
        return _copied_mapping(value, fields)
    if hasattr(type(value), "model_copy"):
        return value.model_copy(update=fields)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    setters = (partial(_set, setattr), partial(_set, object.__setattr__))
    return _first_that_works((lambda *_: dataclasses.replace(value, **fields), *setters), value, fields)


def _copied_mapping(value: Mapping[Any, Any], fields: dict[Any, Any]) -> Any:
    gone = {name for name, new in fields.items() if new is None}
    kept = {name: new for name, new in {**value, **fields}.items() if name not in gone}
    return kept if type(value) is dict else with_entries(value, kept)


def with_entries(value: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    """Return a mapping of the same class with only these entries. Raises `Unchangeable`."""
    if type(value) is dict:
        return entries
    return _checked_copy(
        value,
        lambda: _first_that_works((_updated, _with_inner, _constructed), value, entries),
        lambda made: len(made) == len(entries),
    )


def _checked_copy(value: Any, make: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """Return the result of `make`, if it has the class of `value` and is right. Raises `Unchangeable`."""
    try:
        made = make()
        if type(made) is type(value) and is_right(made):
            return made
    except Exception as error:
        raise Unchangeable(type(value).__name__) from error
    raise Unchangeable(type(value).__name__)


def _updated(value: Any, entries: dict[Any, Any]) -> Any:
    """Copy a dict and refill it. Other mappings might share their entries with the copy."""
    copied = _own_copy(value, (dict, UserDict))
    copied.clear()
    copied.update(entries)
    return copied


def _with_inner(value: Any, parts: Any) -> Any:
    """Copy an object that keeps its parts in a dict or list in one attribute."""
    copied = _own_copy(value)
    (name,) = [name for name, held in vars(value).items() if _is_inner(held, value)]
    object.__setattr__(copied, name, parts)
    return copied


def _is_inner(held: Any, value: Any) -> bool:
    if type(held) is dict:
        return len(held) == len(value) and all(name in held for name in value)
    return type(held) is list and held == list(value)


def _own_copy(value: Any, kinds: tuple[type, ...] = (object,)) -> Any:
    if not issubclass(type(value), kinds):
        raise Unchangeable(type(value).__name__)
    copied = copy.copy(value)
    if copied is value:
        raise Unchangeable(type(value).__name__)
    return copied


def _constructed(value: Any, parts: Any) -> Any:
    return type(value)(parts)


def _refilled(value: Any, items: list[Any]) -> Any:
    kind = type(value)
    if issubclass(kind, tuple):
        made = tuple.__new__(kind, items)
        fields = getattr(kind, "_fields", None)
        if fields is not None and len(fields) != len(items):
            raise Unchangeable(kind.__name__)
        getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
        return made
    if issubclass(kind, frozenset):
        return frozenset.__new__(kind, items)
    return _first_that_works((_emptied_and_filled, _with_inner, _constructed), value, items)


def _emptied_and_filled(value: Any, items: list[Any]) -> Any:
    copied = _own_copy(value, (list, set, deque, UserList))
    copied.clear()
    fill = copied.update if is_a(value, AbstractSet) else copied.extend
    fill(items)
    return copied


def _first_that_works(attempts: tuple[Callable[[Any, Any], Any], ...], *args: Any) -> Any:
    *others, last = attempts
    for attempt in others:
        try:
            return attempt(*args)
        except Exception:  # noqa: BLE001, S112  (a foreign constructor or setter: the next one may work)
            continue
    return last(*args)


def _set(setter: Callable[[Any, str, Any], None], value: Any, fields: dict[str, Any]) -> Any:
    copied = _own_copy(value)
    for name, new in fields.items():
        setter(copied, name, new)
    return copied


def _are_same(found: Any, wanted: list[Any]) -> bool:
    if is_a(found, AbstractSet):
        return all(item in found for item in wanted)
    return all(map(_is_same, found, wanted))


def _is_same(found: Any, wanted: Any) -> bool:
    """Return whether a field took the value. A class may have made another kind of sequence of a list."""
    if found is wanted:
        return True
    try:
        return bool(found == wanted) or (isinstance(wanted, list) and list(found) == wanted)
    except Exception:  # noqa: BLE001  (a foreign comparison: whatever it raises)
        return False
