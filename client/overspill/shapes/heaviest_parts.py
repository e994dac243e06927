"""Find the parts that make data too large: as few as possible, and as deep as possible."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from overspill.shapes.data_view import (
    ENCODING_ERRORS,
    MAX_VALUES,
    Weight,
    parts_to_cut,
    plain_stats_without_long_texts,
    weight_within,
)
from overspill.shapes.fields import FieldPath, Part, as_data, has_long_names, is_a, is_text
from overspill.shapes.pictures import is_payload, is_picture
from overspill.text import measure

_MAX_TEXTS: Final = 16
"""The most long texts that are cut one by one. If there are more, the container of them is cut."""
_MAX_DEPTH: Final = 16
_MANY_PARTS: Final = 50
_MAX_ID_CHARS: Final = 4_096
ID_FIELDS: Final = frozenset(
    {"id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "callId", "session_id"}
    | {"sessionId", "status", "role", "type", "kind", "name"}
)
"""Fields that stay at any size, because programs rely on them."""


class HeaviestParts(NamedTuple):
    """The parts that are too large, and the weight of everything else."""

    parts: list[Part]
    rest: Weight


def heaviest_parts(value: Any, room: Weight) -> HeaviestParts:
    """Return the parts without which `value` counts no more than `room`.

    They are texts alone, or one part that is large as a whole. The walk goes down into the largest part until
    there is more than one such part, or a cycle.
    """
    path: FieldPath = ()
    beside, inside_picture, inside = Weight(0, 0), False, set[int]()
    while len(path) < _MAX_DEPTH and not is_a(value, str) and (parts := parts_to_cut(value)) is not None:
        inside_picture = is_picture(value, path[-1] if path else None, is_inside=inside_picture)
        inside.add(id(value))
        if any(id(part) in inside for _, part in parts) or has_long_names(step for step, _ in parts):
            break
        left = Weight(*(max(0, most - taken) for most, taken in zip(room, beside, strict=True)))
        big, rest = _largest(parts, left, inside_picture=inside_picture)
        rest = Weight(beside.size + rest.size, beside.lines + rest.lines)
        if 1 < len(big) <= _MAX_TEXTS and all(is_text(part) for _, part in big):
            return HeaviestParts([Part((*path, step), part) for step, part in big], rest)
        if len(big) != 1:
            break
        (step, value), beside = big[0], rest
        path = (*path, step)
    return HeaviestParts([Part(path, as_data(value))], beside)


def _largest(
    parts: list[tuple[Any, Any]], room: Weight, *, inside_picture: bool
) -> tuple[list[tuple[Any, Any]], Weight]:
    """Return, in order, the largest parts without which the others fit into `room`.

    Also return the others' weight.
    """
    kept = [_is_kept(step, part, inside_picture=inside_picture) for step, part in parts]
    if len(parts) == 1 and not kept[0]:
        return parts, Weight(_frame_size(parts), 0)
    weights = _plain_weights(parts) or [
        Weight(0, 0) if is_kept and inside_picture else weight_within(part, room.size)
        for is_kept, (_, part) in zip(kept, parts, strict=True)
    ]
    chosen: set[int] = set()
    rest = [sum(each.size for each in weights) + _frame_size(parts), sum(each.lines for each in weights)]
    for unit in range(len(room)):
        order = range(len(parts)) if rest[unit] > room[unit] else ()
        free = (at for at in order if not kept[at] and at not in chosen)
        for at in sorted(free, key=lambda at: (-weights[at][unit], -at)):
            chosen.add(at)
            rest = [left - taken for left, taken in zip(rest, weights[at], strict=True)]
            if rest[unit] <= room[unit]:
                break
    return [parts[at] for at in sorted(chosen)], Weight(*rest)


def _frame_size(parts: list[tuple[Any, Any]]) -> int:
    """Return the bytes of brackets, commas and names around parts as JSON."""
    return 2 + sum(measure.size(step) + 4 if isinstance(step, str) else 1 for step, _ in parts)


def _plain_weights(parts: list[tuple[Any, Any]]) -> list[Weight]:
    """Return the weights of many parts of plain data, measured all at once; empty for other parts."""
    values = [part for _, part in parts]
    if len(values) < _MANY_PARTS or plain_stats_without_long_texts(values, MAX_VALUES) is None:
        return []
    try:
        return [Weight(len(msgspec.json.encode(value)), 0) for value in values]
    except ENCODING_ERRORS:
        return []


def _is_kept(step: Any, part: Any, *, inside_picture: bool) -> bool:
    """Return whether `part` stays at any size: ids, and the data of pictures."""
    return is_id(step, part) or (inside_picture and is_payload(step, part))


def is_id(step: Any, part: Any) -> bool:
    """Return whether `part` is an id that programs rely on."""
    return (
        isinstance(step, str) and step in ID_FIELDS and isinstance(part, str) and len(part) <= _MAX_ID_CHARS
    )
