"""Search bytes for many patterns in one pass of RE2, where the extra `re2` is installed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

try:
    import re2
except (ImportError, OSError):  # without the extra; with too many files open to import anything
    re2 = None

if TYPE_CHECKING:
    from collections.abc import Iterable

IS_AVAILABLE: Final = re2 is not None


class SearchSet:
    """Patterns of RE2, one byte for each character.

    Each process compiles them anew. A thread that searches while the process forks holds locks of RE2, which
    nobody releases in the child.
    """

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self._patterns = tuple(patterns)
        self._process: int | None = None
        self._automaton: re2.Set

    def numbers(self, data: bytes) -> list[int]:
        """Return the numbers of the patterns that match somewhere in `data`, the smallest first."""
        if self._process != os.getpid():
            self._automaton = _compiled(self._patterns)
            self._process = os.getpid()
        return sorted(self._automaton.Match(data) or ())


def _compiled(patterns: Iterable[bytes]) -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    search_set = re2.Set.SearchSet(options)
    for pattern in patterns:
        search_set.Add(pattern)
    search_set.Compile()
    return search_set
