"""Group lines that look equal once their numbers are masked, in bounded memory.

Escape sequences, control characters and blanks at the end of a line are ignored, because nobody sees them.
"""

from __future__ import annotations

import re
from collections import Counter
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from overspill.reading.text import cut_before, decode, strip_escapes
from overspill.wire import Repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BEGINNING_BYTES: Final = 4 * 1024
"""Bytes of a line that are looked at."""
_KEY: Final = 256
"""Bytes of a masked line that are compared."""
EXAMPLE_BYTES: Final = 240
"""Bytes of a group's first line that are shown."""
MAX_GROUPS: Final = 8192
"""Groups held; beyond that the rarer half is forgotten, so the counts of rare ones are lower bounds."""
HEX_LETTERS: Final = 6
"""Hexadecimal letters beside a digit that count as part of its number."""
_NUMBER: Final = re.compile(rb"(?:[a-fA-F]{0,%d}[0-9]+[a-fA-F]{0,%d})+" % (HEX_LETTERS, HEX_LETTERS))
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n")) + b"\x7f"


class RepeatedLines:
    """Counts lines that differ only in their numbers, with the first one of each kind."""

    def __init__(self) -> None:
        self._groups: dict[bytes, list[int]] = {}
        self._examples: dict[bytes, bytes] = {}

    def add(self, keys: Sequence[bytes], number: int, line: Callable[[int], bytes]) -> None:
        """Take the keys of consecutive lines, the first of them line `number`; `line(i)` is how it begins."""
        counts = Counter(keys)
        counts.pop(b"", None)
        last = len(keys) - 1
        firsts = {key: last - position for position, key in enumerate(reversed(keys))}
        for key, count in counts.items():
            if (group := self._groups.get(key)) is not None:
                group[0] += count
            else:
                self._groups[key] = [count, number + firsts[key]]
                self._examples[key] = strip_escapes(line(firsts[key])).rstrip(b"\r")[: EXAMPLE_BYTES + 4]
        if len(self._groups) > MAX_GROUPS:
            self._groups = dict(nlargest(MAX_GROUPS // 2, self._groups.items(), key=lambda item: item[1][0]))
            self._examples = {key: self._examples[key] for key in self._groups}

    def top(self, count: int) -> list[Repeated]:
        """Return the largest groups of at least two lines, each shown by its first line."""
        groups = sorted(self._groups.items(), key=lambda item: (-item[1][0], item[1][1]))
        return [
            Repeated(line=excerpt(self._examples[key], EXAMPLE_BYTES), count=size, first_line=first)
            for key, (size, first) in groups[:count]
            if size > 1
        ]


def excerpt(line: bytes, size: int) -> str:
    """Return the beginning of a line as text."""
    stop = cut_before(line, size)
    return decode(line[:stop]).text + ("…" if stop < len(line) else "")


def key_of(masked: bytes) -> bytes:
    """Return the part of a masked line that is compared."""
    return masked[:_KEY].rstrip()


def mask(data: bytes) -> bytes:
    """Return the visible text of `data` with each decimal or hexadecimal number as one `#`. Lines stay."""
    return _NUMBER.sub(b"#", strip_invisible(data))


def strip_invisible(data: bytes) -> bytes:
    """Return `data` without escape sequences and control characters."""
    return strip_escapes(data).translate(None, _CONTROLS)
