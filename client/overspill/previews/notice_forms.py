"""Forms beside a notice: last lines with the handle, placeholders, a dict; and how to recognise a notice."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from overspill.previews import notice
from overspill.previews.notice_marks import is_mark_of, is_marked, is_remembered, mark_of
from overspill.previews.notice_words import (
    expiry_words,
    how_to_read,
    location_words,
    reason_words,
    repeat_words,
)
from overspill.text import quantities
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from overspill.previews.notice_facts import Facts, Notice, StoreResult

MAX_NOTICE: Final = 64 * 1024
"""A longer text is not a notice, whatever mark it has."""
_FIELDS: Final = ("notice", "status", "capture", "total_bytes", "total_lines", "read_more", "preview")
"""The fields of a notice as a dict, in their order."""
_PLACEHOLDER: Final = re.compile(
    r"\[overspill(?: cap_[a-z2-7]{20})?: [0-9,]{1,20} bytes? of text, (?:in the capture|not stored)\]"
)
_MAX_PLACEHOLDERS: Final = 32
_MARK: Final = "mark"


def closing(facts: Facts, stored: StoreResult, *, says_how: bool = True) -> str:
    """Return one line with the handle, for a stand-in in another form; empty if nothing is stored.

    `says_how` to read more, unless the stand-in does.
    """
    if stored.outcome is Outcome.TRUNCATED:
        return ""
    some = "the first" if facts.missing else "all"
    size = f"{some} {quantities.plural(facts.size, 'byte')}, {quantities.plural(facts.lines, 'line')}"
    how = f" Read more: {how_to_read(facts, stored, with_modes=True)}." if says_how else ""
    kept_where = f"{location_words(stored)}{expiry_words(stored)}{reason_words(stored)}"
    text = f"{size} are stored{kept_where}.{how} {notice.DO_NOT_RERUN}{repeat_words(facts)}"
    return f"[overspill: {' '.join(text.split())}]"


def closings(facts: Facts, stored: StoreResult) -> list[str]:
    """Return `closing` and shorter forms of it, the longest first, for a cut that leaves little room."""
    if stored.outcome is Outcome.TRUNCATED:
        return []
    read = " ".join(how_to_read(facts, stored).split())
    return [closing(facts, stored), f"[overspill: {read}]", f"[overspill {facts.id}]"]


def placeholder(notice: Notice, size: int) -> str:
    """Return what stands in for `size` bytes of further text of an output whose first text is the notice."""
    where = "in the capture" if notice.stored else "not stored"
    name = f"overspill {notice.id}" if notice.id else "overspill"
    return f"[{name}: {quantities.plural(size, 'byte')} of text, {where}]"


def as_dict(notice: Notice) -> dict[str, Any]:
    """Return the notice as a dict. Its `notice` comes first and has everything but the preview.

    `mark` is over all other fields.
    """
    fields = {
        "notice": notice.head,
        "status": str(notice.outcome),
        "capture": notice.id or None,
        "total_bytes": notice.size,
        "total_lines": notice.lines,
        **({"read_more": notice.read_more} if notice.stored else {}),
        "preview": notice.preview,
    }
    return {**fields, _MARK: mark_of(_written(fields))}


def is_notice(value: Any) -> bool:
    """Return whether `value` is a notice that a guard has made, which is never spilled again.

    What it looks like does not count: see `notice_marks`. A text above `MAX_NOTICE` characters is none.
    """
    if not isinstance(value, str) or len(value) > MAX_NOTICE:
        return False
    return is_marked(value) if value.endswith("]") else is_remembered(value)


def is_notice_dict(value: Any) -> bool:
    """Return whether `value` is what `as_dict` returned, in any order, and perhaps with `isError`."""
    if type(value) is not dict or not isinstance(value.get(_MARK), str):
        return False
    fields = {name: field for name, field in value.items() if name not in {_MARK, "isError"}}
    is_flat = all(isinstance(each, str | int | None) for each in fields.values())
    if not is_flat or not fields.keys() <= set(_FIELDS):
        return False
    text = _written({name: fields[name] for name in _FIELDS if name in fields})
    return len(text) <= MAX_NOTICE and is_mark_of(text, value[_MARK])


def notices_among(texts: Iterable[str]) -> list[str]:
    """Return the notices among the texts, and up to 32 of the placeholders beside them.

    A tool can repeat what it was given. So each notice counts once, and all together have at most
    `MAX_NOTICE` characters. A placeholder alone counts for nothing: any tool can print one.
    """
    notices: dict[str, None] = {}
    placeholders: list[str] = []
    room = MAX_NOTICE
    for text in texts:
        if is_notice(text):
            if len(text) <= room and text not in notices:
                notices[text], room = None, room - len(text)
        elif len(placeholders) < _MAX_PLACEHOLDERS and is_placeholder(text):
            placeholders.append(text)
    return [*notices, *placeholders] if notices else []


def is_placeholder(text: str) -> bool:
    """Return whether `text` reads like `placeholder`'s. Any tool can print one."""
    return text.startswith("[overspill") and _PLACEHOLDER.fullmatch(text) is not None


def _written(fields: Mapping[str, Any]) -> str:
    return json.dumps(list(fields.items()))
