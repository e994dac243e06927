"""Recognises structured content that repeats the texts beside it, as MCP servers send it for programs."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import msgspec

from overspill.shapes.data_view import size_within
from overspill.shapes.short_copy import LONG_BYTES

_MAX_FIELDS: Final = 64
"""A dict with more entries is no record."""


def repeats(texts: list[str], value: Any) -> bool:
    """Return whether `texts` say the same as `value`.

    A result that is not an object stands in the only field of one, often `result` or `content`, or in a field
    beside short ones. A list has a text for each item.
    """
    fields = list(islice(value.values(), _MAX_FIELDS)) if type(value) is dict else []
    wrapped = fields[0] if len(fields) == 1 else value
    if len(texts) == 1 and (_says(texts[0], wrapped) or _says(texts[0], value) or _holds(fields, texts[0])):
        return True
    is_list = type(wrapped) is list and len(wrapped) == len(texts)
    return is_list and all(map(_says, texts, wrapped))


def _holds(fields: list[Any], text: str) -> bool:
    """Return whether one of the fields is `text`, and the others are so short that they stay."""
    others = [field for field in fields if not (type(field) is str and field == text)]
    return (
        len(others) < len(fields) < _MAX_FIELDS
        and len(text) > LONG_BYTES
        and all(size_within(field, LONG_BYTES) <= LONG_BYTES for field in others)
    )


def _says(text: str, value: Any) -> bool:
    """Return whether `text` is `value`, or its JSON."""
    if isinstance(value, str) and value == text:
        return True
    try:
        return bool(msgspec.json.decode(text) == value)
    except Exception:  # noqa: BLE001  (no JSON, or a foreign comparison: whatever it raises)
        return False
