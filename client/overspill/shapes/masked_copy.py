"""Copies of results with the secrets in their texts masked.

Data may be hostile: of any depth, with cycles, or of classes that cannot be copied. Values that cannot be
copied stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.shapes.data_view import MAX_PARTS
from overspill.shapes.field_copies import with_fields, with_items, with_text
from overspill.shapes.fields import is_a, is_sequence, parts_of
from overspill.shapes.writer import as_text

if TYPE_CHECKING:
    from overspill.redaction.redactor import Redactor

_MAX_DEPTH: Final = 60
_BYTES: Final = (bytes, bytearray, memoryview)


class MaskedCopy(NamedTuple):
    """A value without secrets in its texts, and how many of each kind were masked."""

    value: Any
    counts: Mapping[str, int]


def masked_copy(value: Any, redactor: Redactor) -> MaskedCopy:
    """Return a copy of `value` without secrets in its texts; the same object if it has none."""
    if value is None or is_a(value, (bool, int, float)):
        return MaskedCopy(value, {})
    counts = _counts(value, redactor)
    return MaskedCopy(_Copy(redactor).of(value, 0) if counts else value, counts)


def _counts(value: Any, redactor: Redactor) -> Mapping[str, int]:
    if is_a(value, _BYTES):
        return redactor.redact(bytes(value)).counts
    return redactor.redact(str.__str__(value) if is_a(value, str) else as_text(value)).counts


def _masked_text(text: Any, redactor: Redactor) -> Any:
    """Return a text or bytes without secrets, in the same class; the same object if it has none."""
    try:
        if is_a(text, str):
            masked, counts = redactor.redact(str.__str__(text))
            return with_text(text, masked) if counts else text
        data, counts = redactor.redact(bytes(text))
        return type(text)(data) if counts else text
    except Exception:  # noqa: BLE001  (a class of texts that makes no others: whatever it raises)
        return text


class _Copy:
    """One copy in the making. A part that several others share is copied once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._made: dict[int, Any] = {}

    def of(self, value: Any, depth: int) -> Any:
        if is_a(value, (str, *_BYTES)):
            return _masked_text(value, self._redactor)
        if depth > _MAX_DEPTH or value is None or is_a(value, (bool, int, float)):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = value  # what a cycle comes back to stays
            self._made[id(value)] = self._copied(value, depth)
        return self._made[id(value)]

    def _copied(self, value: Any, depth: int) -> Any:
        try:
            parts = parts_of(value, MAX_PARTS)
            if parts is None:
                return value
            new = [(step, self._part(step, part, depth)) for step, part in parts]
            changed = {
                step: made for (step, part), (_, made) in zip(parts, new, strict=True) if made is not part
            }
            if type(value) is dict:
                return self._entries(value, dict(new), is_changed=bool(changed))
            if not changed:
                return value
            is_list = is_sequence(value) and not is_a(value, Mapping)
            return with_items(value, [made for _, made in new]) if is_list else with_fields(value, changed)
        except Exception:  # noqa: BLE001  (foreign methods, or no copy can be made)
            return value

    def _entries(self, value: dict[Any, Any], new: dict[Any, Any], *, is_changed: bool) -> dict[Any, Any]:
        """Return a dict with keys without secrets too."""
        keys = {key: _masked_text(key, self._redactor) if type(key) is str else key for key in new}
        if not is_changed and all(key is masked for key, masked in keys.items()):
            return value
        return {keys[key]: part for key, part in new.items()}

    def _part(self, step: Any, part: Any, depth: int) -> Any:
        """Return a part. The name of a text is read too, because it may show that the text is a secret."""
        if type(step) is str and type(part) is str:
            named = f"{step}={part}"
            masked = self._redactor.redact(named).text
            if masked is not named and masked.startswith(f"{step}="):
                return masked[len(step) + 1 :]
        return self.of(part, depth + 1)
