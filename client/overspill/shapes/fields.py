"""Fields of dicts, records and objects of classes that nobody here knows.

Their properties may raise, lie or be read-only: reading never raises, and a change is looked at afterwards.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Unchangeable(Exception):
    """No copy of the value with the other fields could be made."""


def get(value: Any, name: str) -> Any:
    """The field; None where there is none and where reading it raises."""
    if type(value) is dict:
        return value.get(name)
    try:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:  # noqa: BLE001  (a foreign property: whatever it raises)
        return None


def word(value: Any, name: str) -> str:
    """The field if it is text, else nothing."""
    found = get(value, name)
    return found if issubclass(type(found), str) else ""


def changed(value: Any, fields: dict[str, Any]) -> Any:
    """A copy with other `fields`; a dict loses those that become None. Raises `Unchangeable`."""
    try:
        copied = _copied(value, fields)
    except Exception as error:
        raise Unchangeable(type(value).__name__) from error
    if all(_is(get(copied, name), wanted) for name, wanted in fields.items()):
        return copied
    raise Unchangeable(type(value).__name__)


def _copied(value: Any, fields: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        kept = ((name, new) for name, new in {**value, **fields}.items())
        return {name: new for name, new in kept if name not in fields or new is not None}
    if hasattr(type(value), "model_copy"):
        return value.model_copy(update=fields)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    return _first_that_works((_replaced, _assigned, _forced), value, fields)


def _first_that_works(ways: tuple[Callable[[Any, dict[str, Any]], Any], ...], *args: Any) -> Any:
    *most, last = ways
    for way in most:
        try:
            return way(*args)
        except Exception:  # noqa: BLE001, S112  (a foreign constructor or setter: the next way avoids it)
            continue
    return last(*args)


def _replaced(value: Any, fields: dict[str, Any]) -> Any:
    return dataclasses.replace(value, **fields)


def _assigned(value: Any, fields: dict[str, Any]) -> Any:
    return _set(value, fields, setattr)


def _forced(value: Any, fields: dict[str, Any]) -> Any:
    return _set(value, fields, object.__setattr__)


def _set(value: Any, fields: dict[str, Any], setter: Callable[[Any, str, Any], None]) -> Any:
    copied = copy.copy(value)
    if copied is value:
        raise Unchangeable(type(value).__name__)
    for name, new in fields.items():
        setter(copied, name, new)
    return copied


def _is(found: Any, wanted: Any) -> bool:
    """Whether a field took the value: a class may have made another type of sequence of it."""
    if found is wanted:
        return True
    try:
        return bool(found == wanted) or (isinstance(wanted, list) and list(found) == wanted)
    except Exception:  # noqa: BLE001  (a foreign comparison: whatever it raises)
        return False
