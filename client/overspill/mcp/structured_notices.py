"""Puts the notice into structured content: Claude Code and Codex show that, and not the text beside it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from overspill.mcp.valid_results import texts
from overspill.previews.notice_forms import is_placeholder
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.short_copy import ENTRY_NAME, short_copy
from overspill.text.rendering import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def with_notice(content: Any, notice: str, is_valid: Callable[[Any], bool]) -> Any:
    """Return content that was cut, with the notice in it once, if the schema allows a text anywhere."""
    if notice in texts(content):
        return content
    return next((each for each in _attempts(content, notice) if is_valid(each)), content)


def with_notice_alone(content: Any, notice: str, max_chars: int, is_valid: Callable[[Any], bool]) -> Any:
    """Return the notice and the smallest entries of content: the same content if its schema refuses that."""
    entries = content.items() if isinstance(content, dict) else ()
    kept: dict[str, Any] = {}
    for name, value in sorted(entries, key=lambda entry: len(compact_json(entry[1]))):
        max_chars -= len(compact_json({name: value}))
        if max_chars >= 0:
            kept[name] = value
    short = {ENTRY_NAME: notice, **kept}
    return short if is_valid(short) else content


def _attempts(content: Any, notice: str) -> Iterator[Any]:
    short = next((text for text in texts(content) if is_placeholder(text)), None)
    if short is not None:
        yield _exchanged(content, short, notice)
    if isinstance(content, dict):
        yield {ENTRY_NAME: notice, **content}
    with suppress(Unchangeable):
        yield short_copy(content, notice, notice)
    yield {ENTRY_NAME: notice}


def _exchanged(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _exchanged(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_exchanged(each, old, new) for each in value]
    return new if value == old else value
