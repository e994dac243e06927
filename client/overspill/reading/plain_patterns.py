r"""Search for plain texts, and alternatives of them, with Python's own engine, which is fast for these.

It also runs the project's own patterns. It searches bytes, so each letter beyond ASCII is a text of its own,
and ignoring case tries each letter's other forms.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from typing import Final

from overspill.reading.errors import InvalidPattern
from overspill.reading.pattern_syntax import check, encoded

_PLAIN: Final = re.compile(r"(?: [^\\.\[\](){}*+?|^$] | \\[^\w\s] )*+", re.VERBOSE)
_ESCAPED: Final = re.compile(r"\\(.)")
_NO_CASE: Final = 0x1E944
"""Characters from here on have no case."""
_NEEDS_RE2: Final = (
    "this pattern needs RE2, which is not installed where the capture waits: pip install google-re2. "
    "Without it plain texts can be searched for, as error or error|failed, or anything with fixed=true"
)


class PlainPattern:
    """A compiled pattern (see `patterns.Pattern`)."""

    def __init__(self, source: bytes, *, longest: int, ignore_case: bool = False) -> None:
        """`source` is in Python's syntax and takes linear time; it matches at most `longest` bytes."""
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._engine = re.compile(source, flags)
        self.program_size = longest

    @classmethod
    def compile(cls, pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> PlainPattern:
        """Compile a text, or texts with `|` between them. Raises `InvalidPattern` for any other pattern."""
        encoded(pattern)
        texts = [pattern] if fixed else _texts(pattern)
        sources = [_ignoring_case(text) if ignore_case else re.escape(text.encode()) for text in texts]
        longest = max(1, *(4 * len(text) for text in texts))
        return cls(b"|".join(sources), longest=longest)

    @property
    def chains(self) -> tuple[tuple[PlainPattern, ...], ...]:
        """Return the pattern itself as its one alternative of one part."""
        return ((self,),)

    def search(self, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        """Return start and end of the first match in `data[start:stop]`, or None."""
        match = self._engine.search(data, start, stop)
        return match.span() if match else None

    def first_line(self, data: bytes, start: int, stop: int) -> int:  # noqa: ARG002
        """Return `start`: without an index any line may match."""
        return start

    def count(self, data: bytes, start: int, stop: int) -> int:
        """Return how many lines of `data[start:stop]` match; `start` begins a line."""
        count = 0
        while start <= stop and (match := self._engine.search(data, start, stop)):
            count += 1
            start = data.find(b"\n", match.end(), stop) + 1 or stop + 1
        return count


def _texts(pattern: str) -> list[str]:
    check(pattern)
    texts = re.split(r"(?<!\\)\|", pattern)
    if not all(_PLAIN.fullmatch(text) for text in texts):
        raise InvalidPattern(_NEEDS_RE2)
    return [_ESCAPED.sub(r"\1", text) for text in texts]


def _ignoring_case(text: str) -> bytes:
    return b"".join(_forms_of(character) for character in text)


def _forms_of(character: str) -> bytes:
    forms = _all_forms().get(_folded(character), {character})
    return b"(?:%s)" % b"|".join(re.escape(form.encode()) for form in sorted(forms))


@functools.cache
def _all_forms() -> dict[str, set[str]]:
    """Map each folded character to all characters that fold to it. Takes about 30 ms, once."""
    forms: dict[str, set[str]] = defaultdict(set)
    for character in map(chr, (*range(0xD800), *range(0xE000, _NO_CASE))):
        forms[_folded(character)].add(character)
    return {folded: each for folded, each in forms.items() if len(each) > 1}


def _folded(character: str) -> str:
    folded = character.lower() if character == "\u1e9e" else character.casefold()
    return folded if len(folded) == 1 else character
