"""Find which of many words a text has, in one pass.

What a word stands for is a number. A set of numbers is an `int` with a bit for each.
"""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_END: Final = ""


class Keywords:
    """Words, and the set of numbers that each stands for."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._pattern: re.Pattern[str] = _pattern(numbers)
        self._numbers: dict[str, int] = {
            word: reduce(or_, (numbers[part] for part in numbers if part in word)) for word in numbers
        }

    def numbers(self, text: str) -> int:
        """Return what all the words in `text` stand for."""
        found = 0
        for word in set(self._pattern.findall(text)):
            found |= self._numbers[word]
        return found


@lru_cache(maxsize=1024)
def members(numbers: int) -> tuple[int, ...]:
    """Return the numbers in a set, the smallest first."""
    found = []
    while numbers:
        first = numbers & -numbers
        found.append(first.bit_length() - 1)
        numbers -= first
    return tuple(found)


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds, at each position, the longest word that begins there."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[_END] = {}
    heads = "".join(map(re.escape, tree))
    # The search runs from one possible first letter to the next, which is faster than a lookahead alone. It
    # consumes that letter and looks back from there, so that the next word may begin inside this one.
    return re.compile(rf"[{heads}](?<=(?=({_alternatives(tree)})).)", re.DOTALL)


def _alternatives(node: dict[str, Any]) -> str:
    parts = [re.escape(letter) + _alternatives(rest) for letter, rest in node.items() if letter != _END]
    if not parts:
        return ""
    return f"(?:{'|'.join(parts)}){'?' if _END in node else ''}"
