"""Find the parts of data that are too much: as few as possible, and as deep as they are."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from overspill.shapes.data_view import MAX_VALUES, parts_to_cut, plain_stats_without_long_texts, size_within
from overspill.shapes.fields import FieldPath, Part, is_a
from overspill.shapes.pictures import is_payload, is_picture

_MAX_TEXTS: Final = 16
"""The most long texts that are cut one by one. If there are more, the container of them is cut."""
_MAX_DEPTH: Final = 16
_MANY_PARTS: Final = 50
_MAX_ID_CHARS: Final = 4_096
ID_FIELDS: Final = frozenset(
    {"id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "callId", "session_id"}
    | {"sessionId", "status", "role", "type", "kind", "name"}
)
"""Fields that stay whatever their size: programs rely on them."""


class HeaviestParts(NamedTuple):
    """The parts that are too much, and how many bytes everything else has."""

    parts: list[Part]
    rest: int


def heaviest_parts(value: Any, room: int) -> HeaviestParts:
    """Return the parts without which `value` has no more than `room` bytes.

    They are texts alone, or one part that is large as a whole. The walk goes down into the largest part until
    there is more than one such part, or a cycle.
    """
    path: FieldPath = ()
    beside, inside_picture, inside = 0, False, set[int]()
    while len(path) < _MAX_DEPTH and not is_a(value, str) and (parts := parts_to_cut(value)) is not None:
        inside_picture = is_picture(value, path[-1] if path else None, is_inside=inside_picture)
        inside.add(id(value))
        if any(id(part) in inside for _, part in parts):
            break
        big, rest = _largest(parts, max(0, room - beside), inside_picture=inside_picture)
        if 1 < len(big) <= _MAX_TEXTS and all(is_a(part, str) for _, part in big):
            return HeaviestParts([Part((*path, step), part) for step, part in big], beside + rest)
        if len(big) != 1:
            break
        (step, value), beside = big[0], beside + rest
        path = (*path, step)
    return HeaviestParts([Part(path, value)], beside)


def _largest(
    parts: list[tuple[Any, Any]], room: int, *, inside_picture: bool
) -> tuple[list[tuple[Any, Any]], int]:
    """Return the largest parts, in order, without which the others fit into `room`, and the others' bytes."""
    kept = [_is_kept(step, part, inside_picture=inside_picture) for step, part in parts]
    if len(parts) == 1 and not kept[0]:
        return parts, 0
    sizes = _plain_sizes(parts) or [
        0 if is_kept and inside_picture else size_within(part, room)
        for is_kept, (_, part) in zip(kept, parts, strict=True)
    ]
    rest = sum(sizes) + sum(len(step) + 4 for step, _ in parts if isinstance(step, str))
    chosen: list[int] = []
    for at in sorted(range(len(parts)), key=lambda at: (-sizes[at], -at)):
        if rest <= room:
            break
        if not kept[at]:
            chosen.append(at)
            rest -= sizes[at]
    return [parts[at] for at in sorted(chosen)], rest


def _plain_sizes(parts: list[tuple[Any, Any]]) -> list[int]:
    """Return the bytes of many parts of plain data, measured all at once; empty for other parts."""
    values = [part for _, part in parts]
    if len(values) < _MANY_PARTS or plain_stats_without_long_texts(values, MAX_VALUES) is None:
        return []
    try:
        return [len(msgspec.json.encode(value)) for value in values]
    except (UnicodeEncodeError, RecursionError, OverflowError):
        return []


def _is_kept(step: Any, part: Any, *, inside_picture: bool) -> bool:
    """Return whether `part` stays whatever its size: ids, and the data of pictures."""
    if isinstance(step, str) and step in ID_FIELDS:
        return isinstance(part, str) and len(part) <= _MAX_ID_CHARS
    return inside_picture and is_payload(part)
