"""Lets a tool's value be guarded that looks like a message of others.

A guard leaves messages of people, of the model and of the system alone. A tool, or an MCP server, may return
a dict that looks like one. It is guarded without the fields that make it one, and then gets them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill.shapes.carriers import is_other_message

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded

_MARKS: Final = frozenset({"role", "type"})
"""The fields that say whose message a dict is."""


def without_marks(value: Any) -> Any:
    """Return a tool's value without the fields that make it a message; the same object if it is none."""
    marks = _marks(value)
    return {name: field for name, field in value.items() if name not in marks} if marks else value


def with_marks(guarded: Guarded, value: Any) -> Guarded:
    """Return what the guard made of `without_marks(value)`, with these fields; `value` itself if it stays."""
    marks = _marks(value)
    if not marks:
        return guarded
    if guarded.notice is None and not guarded.masked:
        return replace(guarded, value=value)
    is_dict = isinstance(guarded.value, dict)
    return replace(guarded, value={**marks, **guarded.value}) if is_dict else guarded


def _marks(value: Any) -> dict[str, Any]:
    if type(value) is not dict or not is_other_message(value):
        return {}
    return {name: value[name] for name in _MARKS & value.keys()}
