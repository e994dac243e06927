"""Write any value as indented JSON, piece by piece: of any depth, with cycles, or hostile.

The bytes are those of `json.dumps(indent=2, ensure_ascii=False)`, if that has an answer, down to depth 100.
Deeper data stands on one line. Nothing here recurses, no value's own method is trusted, and other threads run
between the pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.text.body import FileBody
from overspill.text.buffer import MAX_BUFFER_BYTES, Buffer, CannotBuffer
from overspill.text.rendering import (
    INDENT,
    MAX_INDENTED_DEPTH,
    compact_json,
    indented_json,
    is_plain_container,
    items_of,
    json_scalar,
    plain_stats,
    printable,
    unprintable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.text.body import Body

MAX_VALUES: Final = 10_000_000
_MAX_BYTES: Final = MAX_BUFFER_BYTES
_MEMORY_BYTES: Final = 64 * 1024 * 1024
_FEW_VALUES: Final = 4_000
_FEW_CHARS: Final = 1024 * 1024
_LONG_TEXT_CHARS: Final = 1024 * 1024
"""A longer text is written in parts."""
_SLICE_ITEMS: Final = 256
"""The most plain, small items that are written in one step, which takes well under a millisecond."""
_LARGE_VALUES: Final = 1_000
"""A container with more values is remembered, in case it comes again."""
_MAX_REPETITIONS: Final = 8
"""How often a large container is written again. After that a remark says that it is the same.

Shared parts may stand for more than any disk has.
"""
_MAX_RECORD_DEPTH: Final = 100
"""A record that makes a new record of itself whenever it is asked has no end."""


def render(value: Any) -> Body:
    """Return a container or record as indented JSON, in a file if it is large."""
    text, _ = _at_once(value, 0)
    if text is not None:
        return text
    buffer = Buffer(memory_bytes=_MEMORY_BYTES, max_bytes=_MAX_BYTES)
    try:
        Writer(buffer.write).value(value)
    except CannotBuffer as error:
        buffer.add_remark(f"the rest is left out: {error}")
    return buffer.finish()


def as_text(value: Any) -> str:
    """Do the same as `render`, and return a text in memory. For values that become parts of one text."""
    return text_of(render(value))


def text_of(body: Body) -> str:
    """Return `body` as text in memory. Raises `OSError` if a file cannot be read."""
    if isinstance(body, FileBody):
        return b"".join(body.pieces()).decode(errors="replace")
    return body if isinstance(body, str) else body.decode(errors="replace")


class Writer:
    """Writes one value to `write`."""

    def __init__(self, write: Callable[[str], object], *, max_values: int = MAX_VALUES) -> None:
        self._write = write
        self._left = max_values
        self._open: list[_OpenContainer] = []
        self._inside: set[int] = set()
        self._records = 0
        self._large: dict[int, _LargeContainer] = {}

    def value(self, value: Any) -> None:
        """Write a value, as far as there is room. A last line says so if not all of it was written."""
        self._begin(value, "")
        while self._open and self._left > 0:
            holder = self._open[-1]
            if holder.at == len(holder.items):
                self._close()
            elif holder.at < holder.one_by_one or not self._slice(holder):
                self._item(holder)
        if self._open:
            self._write("\n… the rest is left out: there are too many values …\n")

    def _slice(self, holder: _OpenContainer) -> bool:
        """Write the next items at once. Return whether that was possible; if not, they come one by one."""
        some = holder.items[holder.at : holder.at + _SLICE_ITEMS]
        holder.one_by_one = holder.at + len(some)
        depth = len(self._open) - 1
        if len(some) == 1:
            return False
        text, values = _at_once(dict(some) if holder.is_dict else some, depth)
        if text is None:
            return False
        items = text[1 : text.rindex("\n")].replace("\n", "\n" + " " * (INDENT * depth))
        self._write(("," if holder.at else "") + items)
        holder.at += len(some)
        self._left -= values
        return True

    def _item(self, holder: _OpenContainer) -> None:
        item = holder.items[holder.at]
        before = ("," if holder.at else "") + self._newline()
        holder.at += 1
        if holder.is_dict:
            key, item = item
            before += f"{compact_json(_key(key))}: "
        self._begin(item, before)

    def _begin(self, value: Any, before: str) -> None:
        self._left -= 1
        if type(value) is str and len(value) > _LONG_TEXT_CHARS:
            self._long(before, value)
            return
        opened = self._open_or_encode(value)
        if isinstance(opened, str):
            self._write(before + opened)
            return
        self._write(before + ("{" if opened.is_dict else "["))
        self._open.append(opened)
        self._inside.add(opened.identity)
        self._records += opened.is_record

    def _long(self, before: str, text: str) -> None:
        self._write(f'{before}"')
        for at in range(0, len(text), _LONG_TEXT_CHARS):
            self._write(compact_json(text[at : at + _LONG_TEXT_CHARS])[1:-1])
        self._write('"')

    def _close(self) -> None:
        closed = self._open.pop()
        self._inside.discard(closed.identity)
        if closed.left - self._left > _LARGE_VALUES:
            self._large.setdefault(closed.identity, _LargeContainer(closed.holder))
        self._records -= closed.is_record
        self._write((self._newline() if closed.items else "") + ("}" if closed.is_dict else "]"))

    def _newline(self) -> str:
        depth = len(self._open)
        return "\n" + " " * (INDENT * depth) if depth <= MAX_INDENTED_DEPTH else ""

    def _open_or_encode(self, value: Any) -> _OpenContainer | str:
        """Return a container as open, or the JSON of a single value."""
        try:
            if id(value) in self._inside:
                return compact_json(f"<{type(value).__name__} that holds itself>")
            if (large := self._large.get(id(value))) is not None:
                large.repetitions += 1
                if large.repetitions > _MAX_REPETITIONS:
                    return compact_json(f"<the same {type(value).__name__} as above>")
            if self._records > _MAX_RECORD_DEPTH:
                return compact_json(printable(value))
            items = items_of(value)
            if items is None:
                return compact_json(json_scalar(value))
            return _OpenContainer(value, items, self._left)
        except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
            return compact_json(unprintable(value, error))


class _LargeContainer:
    """A large container that was written, kept alive so that its id stays its own."""

    __slots__ = ("holder", "repetitions")

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.repetitions = 0


class _OpenContainer:
    """A container that is being written: a snapshot of its items, since other threads may change it.

    `at` is the next item. Items before `one_by_one` cannot be written several at once.
    """

    __slots__ = ("at", "holder", "identity", "is_dict", "is_record", "items", "left", "one_by_one")

    def __init__(self, value: Any, items: Any, left: int) -> None:
        self.holder = value
        self.left = left
        self.identity = id(value)
        self.is_record = items is not value
        self.is_dict = isinstance(items, dict)
        self.at = self.one_by_one = 0
        if isinstance(items, dict):
            self.items: list[Any] = list(dict.items(items))
        else:
            self.items = list(list.__iter__(items) if isinstance(items, list) else tuple.__iter__(items))


def _at_once(value: Any, depth: int) -> tuple[str | None, int]:
    """Return the JSON of small plain data at this depth, and its number of values; None for other data."""
    found = plain_stats(value, _FEW_VALUES) if is_plain_container(value) else None
    if found is None or found.chars > _FEW_CHARS or found.depth + depth > MAX_INDENTED_DEPTH:
        return None, 0
    try:
        return indented_json(value), found.values // 2
    except (ValueError, TypeError, RuntimeError):  # numbers too long to print; changed by another thread
        return None, 0


def _key(key: Any) -> str:
    """Return a key of any type as JSON's own rules have it, else as it prints."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, (bool, int, float)):
        return compact_json(json_scalar(key)).strip('"')
    return printable(key)
