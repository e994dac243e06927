"""Shortens structured content so that it keeps to its tool's output schema: the largest values first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEPT_ITEMS: Final = 5
_KEPT_CHARS: Final = 200
"""What stays of a list or a text that is cut."""
_MOST_STEPS: Final = 200
"""Values that are tried to be cut, before the result is left as long as it is."""
_Position = tuple[Any, Any]
"""A container and the key or index of one of its values."""


def validator(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """Return a function that says whether a value keeps to the schema. A schema that is wrong allows all."""
    import jsonschema  # noqa: PLC0415  (slow to import, and needed by few servers)

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError:
        return lambda value: True  # noqa: ARG005
    checker = kind(schema)

    def is_valid(value: Any) -> bool:
        try:
            return bool(checker.is_valid(value))
        except Exception:  # noqa: BLE001  (a reference that cannot be resolved: the client cannot check it either)
            return True

    return is_valid


def shortened(content: Any, max_chars: int, is_valid: Callable[[Any], bool]) -> Any:
    """Return a copy of about `max_chars` characters of JSON that `is_valid`.

    Lists keep their first items and texts their beginning; what the schema needs whole stays whole, so the
    copy may be longer than asked for.
    """
    root = [json.loads(json.dumps(content))]
    tried: set[int] = set()
    for _ in range(_MOST_STEPS):
        if _size(root[0]) <= max_chars:
            break
        position = max(_positions(root, tried), key=lambda at: _size(at[0][at[1]]), default=None)
        if position is None:
            break
        holder, key = position
        whole = holder[key]
        holder[key] = _cut(whole)
        if not is_valid(root[0]):
            holder[key] = whole
            tried.add(id(whole))
    return root[0]


def _positions(value: Any, tried: set[int]) -> Iterator[_Position]:
    """Yield where a value is that can be cut."""
    pending = [value]
    while pending:
        holder = pending.pop()
        for key, each in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(each, dict | list):
                pending.append(each)
            if id(each) not in tried and _is_long(each):
                yield holder, key


def _is_long(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > _KEPT_CHARS + 1
    return isinstance(value, list) and len(value) > _KEPT_ITEMS


def _cut(value: Any) -> Any:
    return f"{value[:_KEPT_CHARS]}…" if isinstance(value, str) else value[:_KEPT_ITEMS]


def _size(value: Any) -> int:
    return len(json.dumps(value))
