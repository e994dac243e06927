"""Finds out which shape an output has. Everything that the output's methods raise is caught here."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from overspill.shapes import data_view
from overspill.shapes.block_types import telling_field
from overspill.shapes.carriers import is_other_message
from overspill.shapes.envelope import Envelope
from overspill.shapes.exceptions import ExceptionShape
from overspill.shapes.fields import Part
from overspill.shapes.parts import parts_of_tool, parts_with_text
from overspill.shapes.sender import Sender
from overspill.shapes.single_values import BinaryShape, PrintedShape, TextShape, UnreadableShape
from overspill.text import measure
from overspill.text.limits import with_room_for
from overspill.text.rendering import (
    is_opaque,
    is_structured,
    plain_stats,
    printable,
    printable_number,
    unprintable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.shapes.shape import Shape
    from overspill.text.limits import Limits

_SHORT_NUMBER_BITS: Final = 1_000
"""An integer of up to this many bits is shorter than any sensible limit."""
_FEW_VALUES: Final = 100
_PLAIN: Final = frozenset({str, int, float, bool})
_SHAPE_FIELDS: Final = frozenset({"content", "type", "parts"})
"""A dict with none of these fields is data, unless one field shows that it is a block."""


def examine(result: Any, *, is_printed: bool = False, sender: Sender = Sender.TOOL) -> Shape | None:
    """Return the shape of `result`; None if it passes as it is: a number, or an opaque object.

    `is_printed`: a model is shown `str(result)`, and that may be another text than it holds.
    Of a `sender` that is a host, it may be a message that no tool made, which passes too.
    Never raises. An object whose methods raise has the shape of a short description, and passes.
    """
    if type(result) is str:
        return TextShape(result)
    try:
        return (_printed_otherwise(result) if is_printed else None) or _examined(result, sender)
    except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
        return UnreadableShape(unprintable(result, error))


def is_too_long(shape: Shape, limits: Limits) -> bool:
    """Return whether the text for the model exceeds the limits, not counting the notices in it.

    Raises `OSError` if a file cannot be read.
    """
    if not shape.exceeds(limits):
        return False
    notices = shape.notices()
    return not notices or shape.exceeds(with_room_for(limits, notices))


def size_beside_notices(shape: Shape) -> int:
    """Return the bytes that a model sees, without the notices among them."""
    return max(0, shape.size - sum(map(measure.size, shape.notices())))


def sole_text(shape: Shape) -> str | None:
    """Return the text of an output that is nothing but one text; None for other outputs."""
    if type(shape) is TextShape:
        return shape.body if isinstance(shape.body, str) else None
    if isinstance(shape, Envelope) and len(shape.parts) == 1:
        value = shape.parts[0].value
        return value if isinstance(value, str) else None
    return None


def small_data_size(result: Any, limit: int) -> int | None:
    """Return the bytes of a dict that is plain data, if it is small and they are at most `limit`.

    A fast path for what many tools return: a fourth of the time.
    """
    try:
        if type(result) is not dict or not _is_data(result):
            return None
        found = plain_stats(result, _FEW_VALUES)
        if found is None or found.chars > limit:
            return None
        size = data_view.size_of(result, found)
    except Exception:  # noqa: BLE001  (a name in it may be of a foreign class, whatever it raises)
        return None
    return size if size <= limit else None


def _is_data(result: dict[Any, Any]) -> bool:
    return _SHAPE_FIELDS.isdisjoint(result) and not telling_field(result)


def _printed_otherwise(result: Any) -> Shape | None:
    """Return the shape of the printed text, if a text, number or member prints as another text."""
    if type(result) in _PLAIN or not isinstance(result, (str, int, float, Enum)):
        return None
    text = printable(result)
    is_same = isinstance(result, str) and text == str.__str__(result)
    return None if is_same else TextShape(text)


def _examined(result: Any, sender: Sender) -> Shape | None:
    for kinds, shape in _SHAPES:
        if isinstance(result, kinds):
            return shape(result)
    if result is None or isinstance(result, (int, float)):
        if isinstance(result, int) and result.bit_length() > _SHORT_NUMBER_BITS:
            return PrintedShape(result, str(printable_number(result)))
        return None
    found = _parts_of(result, sender)
    if found is None and sender is Sender.HOST and is_other_message(result):
        return None
    if found is None:
        return _without_parts(result)
    return _envelope(result, found, sender) if found else None


def _envelope(result: Any, parts: list[Part], sender: Sender) -> Envelope:
    shape = Envelope(result, parts)
    shape.sender = sender
    return shape


def _parts_of(result: Any, sender: Sender) -> list[Part] | None:
    if type(result) is dict and _is_data(result):
        return None
    try:
        return parts_with_text(result) if sender is Sender.HOST else parts_of_tool(result, sender)
    except Exception:  # noqa: BLE001  (foreign objects within: what they raise is shown in their place)
        return None


def _without_parts(result: Any) -> Shape | None:
    if is_structured(result):
        return Envelope(result, [Part((), result)])
    return None if is_opaque(result) else PrintedShape(result)


_SHAPES: Final[tuple[tuple[Any, Callable[[Any], Shape]], ...]] = (
    (str, TextShape),
    ((bytes, bytearray, memoryview), BinaryShape),
    (Exception, ExceptionShape),
)
