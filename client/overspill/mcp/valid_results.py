"""Shortens structured content so that it keeps to its tool's output schema: the largest values first.

It puts the notice in too: Claude Code and Codex show structured content, and not the text beside it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from overspill.mcp.schema_room import wants_length
from overspill.previews.notice_forms import is_placeholder
from overspill.shapes.field_copies import Unchangeable
from overspill.shapes.replacing import with_texts
from overspill.shapes.short_copy import ENTRY_NAME, short_copy
from overspill.text.rendering import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEPT_ITEMS: Final = (5, 50, 500, 1, 0)
_KEPT_CHARS: Final = (200, 2_000, 20_000, 40, 0)
"""The lengths to which a list or a text is cut, in the order of the attempts: a schema may want more."""
_ATTEMPTS: Final = len(_KEPT_ITEMS)
_LAST_RESORT: Final = 2
"""The attempts after this one wait until nothing else is left to cut."""
_KEPT_KEYS: Final = 20
"""An object with more keys than this is a table, of which the first stay."""
_MAX_STEPS: Final = 200
"""Cuts that are tried, before the result is left as long as it is."""
_Path: TypeAlias = tuple[str, ...]
"""The path to a value: the keys down to it, with `*` for every index of a list and every key of a table."""


@dataclass
class _Group:
    """The values at one path, which are cut alike. A place is a container and a key or index in it."""

    size: int = 0
    places: list[tuple[Any, Any]] = field(default_factory=list)


def valid(schema: dict[str, Any] | None, whole: Any, ours: Any, notice: str, max_chars: int) -> Any:
    """Return `ours`, which was made of `whole`, so that it keeps to the schema of its tool.

    If it is cut, the notice is in it.
    """
    is_valid = _any_is_valid if schema is None else validator(schema, whole)
    if not is_valid(ours):
        short = _short(whole, notice, max_chars, is_valid, may_be_alone_first=wants_length(schema))
        if not is_valid(short):  # then the whole was not: to check that takes as long as it is large
            return ours
        ours = short
    return ours if ours == whole else _with_notice(ours, notice, is_valid)


def _any_is_valid(_content: Any) -> bool:
    return True


def _short(
    whole: Any, notice: str, max_chars: int, is_valid: Callable[[Any], bool], *, may_be_alone_first: bool
) -> Any:
    """Return content that is shortened, or has the notice alone if it would stay too long otherwise."""
    if may_be_alone_first:
        alone = _with_notice_alone(whole, notice, max_chars, is_valid)
        if alone is not whole:
            return alone
    short = shortened(whole, max_chars, is_valid)
    if len(compact_json(short)) <= max_chars:
        return short
    alone = _with_notice_alone(whole, notice, max_chars, is_valid)
    return short if alone is whole else alone


def validator(schema: dict[str, Any], whole: Any) -> Callable[[Any], bool]:
    """Return a function that says whether what was made of `whole` keeps to the schema.

    A text with a format is one of those of `whole`: clients check formats that nothing checks here. A schema
    that is wrong allows all.
    """
    import jsonschema  # noqa: PLC0415  (slow to import, and needed by few servers)

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError:
        return _any_is_valid
    checker = jsonschema.validators.extend(kind, _checks_of_texts(kind, frozenset(texts(whole))))(schema)

    def is_valid(value: Any) -> bool:
        try:
            return bool(checker.is_valid(value))
        except Exception:  # noqa: BLE001  (a reference that cannot be resolved: the client cannot check it either)
            return True

    return is_valid


def _checks_of_texts(kind: Any, exempt: frozenset[str]) -> dict[str, Any]:
    """Return the checks of formats and patterns. Both are for texts that are not `exempt`."""
    from jsonschema import ValidationError  # noqa: PLC0415  (as above)

    def check_format(_: Any, form: Any, text: Any, __: Any) -> Iterator[Any]:
        if isinstance(text, str) and text not in exempt:
            yield ValidationError(f"a text of the format {form!r} was changed")

    def check_pattern(checker: Any, pattern: Any, text: Any, schema: Any) -> Iterator[Any]:
        if isinstance(text, str) and text not in exempt:
            try:
                yield from kind.VALIDATORS["pattern"](checker, pattern, text, schema)
            except re.error:  # clients write them for JavaScript
                yield ValidationError(f"the pattern {pattern!r} cannot be checked")

    return {"format": check_format, "pattern": check_pattern}


def texts(value: Any) -> Iterator[str]:
    """Yield the texts in data, without its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def shortened(content: Any, max_chars: int, is_valid: Callable[[Any], bool]) -> Any:
    """Return a copy of about `max_chars` characters of JSON that `is_valid`.

    Lists and tables keep their first items, and texts their beginning. What the schema needs whole stays
    whole, so the copy may be longer than asked for.
    """
    hasty = _cut_copy(content, max_chars, lambda _: True)  # to check what is large takes seconds
    return hasty if is_valid(hasty) else _cut_copy(content, max_chars, is_valid)


def _cut_copy(content: Any, max_chars: int, is_valid: Callable[[Any], bool]) -> Any:
    root = [json.loads(json.dumps(content))]
    tried: Counter[_Path] = Counter()
    for _ in range(_MAX_STEPS):
        groups: dict[_Path, _Group] = {}
        if _measure(root, 0, (), groups) <= max_chars:
            break
        left = [path for path in groups if tried[path] < _ATTEMPTS]
        if not left:
            break
        path = min(left, key=lambda each: (max(0, tried[each] - _LAST_RESORT), -groups[each].size))
        tried[path] = _cut_group(groups[path], tried[path], lambda: is_valid(root[0]))
    return root[0]


def _measure(holder: Any, key: Any, path: _Path, groups: dict[_Path, _Group]) -> int:
    """Return about how many characters of JSON a value has; note it and all that is in it in `groups`."""
    value = holder[key]
    if not isinstance(value, str | list | dict):
        return len(str(value))
    size = 2 + (len(value) if isinstance(value, str) else 0)
    for each, step in _steps(value):
        size += len(str(each)) + 4 + _measure(value, each, (*path, step), groups)
    group = groups.setdefault(path, _Group())
    group.size += size
    group.places.append((holder, key))
    return size


def _steps(value: Any) -> Iterator[tuple[Any, str]]:
    """Yield the keys or indexes of a container, and what stands for each in a path."""
    if isinstance(value, list):
        yield from ((index, "*") for index in range(len(value)))
    elif isinstance(value, dict):
        is_table = len(value) > _KEPT_KEYS
        yield from ((key, "*" if is_table else key) for key in value)


def _cut_group(group: _Group, attempt: int, is_valid: Callable[[], bool]) -> int:
    """Cut all values of a group, by the first attempt that changes one.

    Return the number of the next attempt. If the whole is then not valid, the values are restored.
    """
    for number in range(attempt, _ATTEMPTS):
        cut = [(place, place[0][place[1]], _cut(place[0][place[1]], number)) for place in group.places]
        if all(shorter is whole for _, whole, shorter in cut):
            continue
        for (holder, key), _, shorter in cut:
            holder[key] = shorter
        if not is_valid():
            for (holder, key), whole, _ in cut:
                holder[key] = whole
        return number + 1
    return _ATTEMPTS


def _cut(value: Any, attempt: int) -> Any:
    """Return a shorter value, or the same if it is not longer than what this attempt keeps."""
    if isinstance(value, str):
        kept = _KEPT_CHARS[attempt]
        return value if len(value) <= kept + 1 else f"{value[:kept]}…"
    if isinstance(value, list):
        kept = _KEPT_ITEMS[attempt]
        return value if len(value) <= kept else value[:kept]
    if len(value) > _KEPT_KEYS:
        return dict(islice(value.items(), _KEPT_KEYS))
    return value


def _with_notice(content: Any, notice: str, is_valid: Callable[[Any], bool]) -> Any:
    """Return content that was cut, with the notice in it once, if the schema allows a text anywhere."""
    if notice in texts(content):
        return content
    return next((each for each in _attempts(content, notice) if is_valid(each)), content)


def _with_notice_alone(content: Any, notice: str, max_chars: int, is_valid: Callable[[Any], bool]) -> Any:
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
        yield with_texts(content, lambda text: notice if text == short else text)
    if isinstance(content, dict):
        yield {ENTRY_NAME: notice, **content}
    with suppress(Unchangeable):
        yield short_copy(content, notice, notice)
    yield {ENTRY_NAME: notice}
