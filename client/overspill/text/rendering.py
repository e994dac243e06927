"""Turn values of any kind into text: JSON if they are data, else as they print.

A description replaces a value whose own methods raise.
"""

from __future__ import annotations

import json
from collections import UserString, deque
from collections.abc import ItemsView, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from itertools import islice
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from overspill.text.media_types import BINARY_TYPE, sniff_media_type

if TYPE_CHECKING:
    from collections.abc import Callable

INDENT: Final = 2
COLLECTIONS: Final = (list, tuple, AbstractSet, deque, KeysView, ValuesView, ItemsView, Sequence)
_ATTRIBUTE_HOLDERS: Final = (CompletedProcess, SimpleNamespace)
"""Classes of records whose fields are whatever attributes they have."""
TEXTS: Final = (str, bytes, bytearray, memoryview, range, UserString)
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_HOLDERS: Final = frozenset({dict, list, tuple})
_LONGEST_NUMBER: Final = 24
_MAX_DIGITS: Final = 4_000
"""Python refuses to print longer numbers (4,300 digits by default); they are written in hexadecimal."""
_BITS_A_DIGIT: Final = 3.33
_MAX_ITEMS: Final = 10_000_000
"""A sequence that makes its items on request may have no end."""
_MAX_DIGEST_BYTES: Final = 64
_SHORT: Final = 250
"""If all texts in one dict or list are so short together, none has to be measured by itself."""
MAX_INDENTED_DEPTH: Final = 100
"""Deeper data is not indented: the C encoders give up not much deeper."""


class PlainStats(NamedTuple):
    """The figures of plain data from a quick look: its number of values, characters of texts, and depth.

    No text or name in it is longer than `longest` characters.
    """

    values: int
    chars: int
    depth: int
    longest: int

    def most_bytes(self) -> int:
        """Return at least the bytes of its indented JSON: six for an escaped character, a line a value."""
        return 6 * self.chars + self.values * (_LONGEST_NUMBER + 2 * INDENT * self.depth)


def plain_stats(value: Any, max_values: int) -> PlainStats | None:
    """Return the stats of plain data of up to `max_values`; None for larger data, and for other values.

    A value that several containers share counts in each of them.
    """
    values, chars, depth, longest, level = 1, 0, 0, 0, [value]
    try:
        while level and depth < MAX_INDENTED_DEPTH:
            depth += 1
            below: list[Any] = []
            for holder in level:
                values += 2 * len(holder)
                if values > max_values:
                    return None
                found = _count_texts(holder, below)
                chars += found
                if found > longest:
                    longest = max(longest, found if found < _SHORT else _longest_in(holder))
            level = below
    except (TypeError, RuntimeError):  # other data; changed by another thread
        return None
    return None if level else PlainStats(values, chars, depth, longest)


def _count_texts(holder: Any, below: list[Any]) -> int:
    """Count the characters of the texts in `holder`, and add the containers in it to `below`.

    Raises `TypeError` if it holds anything but plain data.
    """
    chars = 0
    if type(holder) is dict:
        chars = len("".join(holder))
        holder = holder.values()
    for item in holder:
        kind = type(item)
        if kind is str:
            chars += len(item)
        elif kind in _HOLDERS:
            below.append(item)
        elif kind is int:
            chars += item.bit_length() >> 6
        elif kind not in _PLAIN:
            raise TypeError
    return chars


def _longest_in(holder: Any) -> int:
    """Return the characters of the longest text or name in `holder`."""
    values = [*holder, *holder.values()] if type(holder) is dict else holder
    return max((len(each) for each in values if type(each) is str), default=0)


def is_plain_container(value: Any) -> bool:
    """Return whether `value` is a dict, list or tuple, and not of a derived class."""
    return type(value) in _HOLDERS


def is_structured(value: Any) -> bool:
    """Return whether `value` is a container or record, which frameworks turn into JSON for the model."""
    if is_plain_container(value):
        return True
    if isinstance(value, TEXTS):
        return False
    return isinstance(value, (Mapping, *COLLECTIONS, msgspec.Struct, *_ATTRIBUTE_HOLDERS)) or (
        not isinstance(value, type) and _has_fields(type(value))
    )


def _has_fields(kind: type) -> bool:
    return any(hasattr(kind, name) for name in ("__dataclass_fields__", "model_dump", "__attrs_attrs__"))


def is_opaque(value: Any) -> bool:
    """Return whether `value` prints as nothing but its class and address."""
    printers: tuple[Any, Any] = (type(value).__str__, type(value).__repr__)
    return isinstance(value, type) or printers == (object.__str__, object.__repr__)


def items_of(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    """Return the dict or list that represents a container or record; None for a single value.

    Raises whatever the value's own methods raise.
    """
    if isinstance(value, (dict, list, tuple)):
        return value
    if isinstance(value, (*TEXTS, type)):
        return None
    if isinstance(value, Mapping):
        return {key: value[key] for key in islice(value, _MAX_ITEMS)}
    if isinstance(value, AbstractSet):
        return sorted(value, key=lambda item: (printable(item), type(item).__qualname__))
    if isinstance(value, COLLECTIONS):
        items = list(islice(value, _MAX_ITEMS))
        return None if _is_made_of_itself(value, items) else items
    return _record(value)


def _is_made_of_itself(value: Any, items: list[Any]) -> bool:
    """Return whether each item of `value` is of its own class and has itself for an item, as in a text."""
    if not items:
        return False
    first = items[0]
    return type(first) is type(value) and len(first) == 1 and bool(next(iter(first)) == first)


def _record(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    if isinstance(value, _ATTRIBUTE_HOLDERS):
        return dict(vars(value))  # `getattr` would read another thing for a name such as `__class__`
    names = field_names(value)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if not hasattr(type(value), "model_dump"):
        return None
    dumped = value.model_dump()
    return dumped if isinstance(dumped, (dict, list, tuple)) else [dumped]


def field_names(value: Any) -> list[str] | None:
    """Return the field names of a record that says them; None for other values, as pydantic's models."""
    kind = type(value)
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    if is_dataclass(kind):
        return [item.name for item in fields(kind)]
    if issubclass(kind, _ATTRIBUTE_HOLDERS):
        return list(vars(value))
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else [item.name for item in attributes]


def json_scalar(value: Any) -> Any:
    """Return a single value as JSON can hold it: a string, number, bool or None."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    for kind, plain in _SCALARS:
        if isinstance(value, kind):
            return plain(value)
    return printable(value)


def printable_number(value: int) -> int | str:
    """Return `value`, or its hexadecimal digits if Python would refuse to print it."""
    return int(value) if value.bit_length() < _MAX_DIGITS * _BITS_A_DIGIT else hex(value)


def printable(value: Any, render: Any = str) -> str:
    """Return `render(value)` as text, or a description if that fails."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        return str.__str__(render(value))
    except Exception as error:  # noqa: BLE001  (a foreign method: whatever it raises)
        return unprintable(value, error)


def unprintable(value: Any, error: Exception) -> str:
    """Return the description of a value whose own methods raise."""
    return f"<{_name(type(value))} that cannot be shown: {_name(type(error))}>"


def _name(kind: type) -> str:
    try:
        return f"{kind.__name__}"
    except Exception:  # noqa: BLE001  (a foreign metaclass: whatever it raises)
        return "object"


def compact_json(value: Any) -> str:
    """Return JSON on one line. Raises what `json.dumps` raises."""
    return _COMPACT.encode(value)


def indented_json(value: Any) -> str:
    """Return plain data as indented JSON. Raises what `json.dumps` raises."""
    try:
        return msgspec.json.format(compact_json(value), indent=INDENT)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # NaN, infinities; lone surrogates
        return _INDENTED.encode(value)


_COMPACT: Final = json.JSONEncoder(ensure_ascii=False)
_INDENTED: Final = json.JSONEncoder(ensure_ascii=False, indent=INDENT)


def bytes_as_text(data: bytes) -> str:
    """Return `data` as text, or its type and size if it is a known kind of file, or short and no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        kind = sniff_media_type(data)
    if kind is None and len(data) > _MAX_DIGEST_BYTES:  # most likely a program's output with some odd bytes
        return data.decode(errors="replace")
    return f"<{len(data):,} bytes of {kind or BINARY_TYPE}>"


_SCALARS: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, printable_number),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: bytes_as_text(bytes(value))),
    ((date, time), lambda value: printable(value, type(value).isoformat)),
)
