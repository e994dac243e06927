"""Values of any kind as indented JSON, written piece by piece: of any depth, with cycles, and hostile ones.

The bytes are those of `json.dumps(indent=2, ensure_ascii=False)` wherever that has an answer, down to a
depth behind which all stands on one line. Nothing here recurses, and no value's own method is trusted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.body import Filed
from overspill.gathering import Full, Gathering
from overspill.rendering import INDENT, compact, described, dumped, is_plain, items_of, outline, scalar, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.body import Body

MOST_VALUES: Final = 10_000_000
_MOST_AT_ONCE: Final = 3_000_000
_MOST_CHARS: Final = 1024 * 1024 * 1024
_IN_MEMORY: Final = 64 * 1024 * 1024
_DEEPEST_INDENTED: Final = 100
_DEEPEST_RECORDS: Final = 100
"""A record that makes another one of itself whenever it is asked has no end."""


def rendered(value: Any) -> Body:
    """A container or record as indented JSON, in a file where it is large and has to be written in pieces."""
    found = outline(value, _MOST_AT_ONCE) if is_plain(value) else None
    if found is not None and found.chars <= _MOST_CHARS:
        with suppress(ValueError, TypeError, RuntimeError):  # endless numbers; changed by another thread
            return dumped(value)
    gathering = Gathering(in_memory=_IN_MEMORY)
    with suppress(Full):  # then what came before is what there is
        Writer(gathering.write).value(value)
    return gathering.finish()


def as_text(value: Any) -> str:
    """As `rendered`, for what stands in one text with others."""
    return text_of(rendered(value))


def text_of(body: Body) -> str:
    """`body` as text, all of it in memory."""
    if isinstance(body, Filed):
        return b"".join(body.pieces()).decode(errors="replace")
    return body if isinstance(body, str) else body.decode(errors="replace")


class _Open(NamedTuple):
    """A container on the way in: what is still to come of it, and whose it is."""

    items: Iterator[tuple[Any, Any]]
    is_dict: bool
    identity: int
    holder: Any
    is_record: bool

    @property
    def ends(self) -> str:
        return "}" if self.is_dict else "]"


class Writer:
    """Writes one value to `write`. `is_whole` tells whether all of it was written."""

    def __init__(self, write: Callable[[str], object], *, most_values: int = MOST_VALUES) -> None:
        self._write = write
        self._left = most_values
        self._open: list[_Open] = []
        self._inside: set[int] = set()
        self._records = 0
        self.is_whole = True

    def value(self, value: Any) -> None:
        self._begin(value, "")
        is_first = True
        while self._open and self._left > 0:
            holder = self._open[-1]
            pair = next(holder.items, None)
            if pair is None:
                self._close(is_first)
                is_first = False
                continue
            key, item = pair
            named = f"{compact(_key(key))}: " if holder.is_dict else ""
            is_first = self._begin(item, ("" if is_first else ",") + self._newline() + named)
        if self._open:
            self.is_whole = False
            self._write("\n… the rest is left out: there are too many values …\n")

    def _begin(self, value: Any, before: str) -> bool:
        """Whether a container was opened."""
        self._left -= 1
        opened = self._opened(value)
        if not isinstance(opened, _Open):
            self._write(before + opened)
            return False
        self._write(before + ("{" if opened.is_dict else "["))
        self._open.append(opened)
        self._inside.add(opened.identity)
        self._records += opened.is_record
        return True

    def _close(self, is_empty: bool) -> None:  # noqa: FBT001
        closed = self._open.pop()
        self._inside.discard(closed.identity)
        self._records -= closed.is_record
        self._write(closed.ends if is_empty else self._newline() + closed.ends)

    def _newline(self) -> str:
        depth = len(self._open)
        return "\n" + " " * (INDENT * depth) if depth <= _DEEPEST_INDENTED else ""

    def _opened(self, value: Any) -> _Open | str:
        """A container's items, or the JSON of a single value."""
        try:
            if id(value) in self._inside:
                return compact(f"<{type(value).__name__} that holds itself>")
            if self._records > _DEEPEST_RECORDS:
                return compact(shown(value))
            items = items_of(value)
            if items is None:
                return compact(scalar(value))
            return _open(value, items)
        except Exception as error:  # noqa: BLE001  (foreign methods: whatever they raise)
            return compact(described(value, error))


def _open(value: Any, items: Any) -> _Open:
    """With a snapshot of the items, for other threads may change the container meanwhile."""
    if isinstance(items, dict):
        pairs = list(dict.items(items))
    else:
        kind = list if isinstance(items, list) else tuple
        pairs = [(None, item) for item in kind.__iter__(items)]
    return _Open(iter(pairs), isinstance(items, dict), id(value), value, is_record=items is not value)


def _key(key: Any) -> str:
    """A key of any type as JSON's own rules have it, else as it prints."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, (bool, int, float)):
        return compact(scalar(key)).strip('"')
    return shown(key)
