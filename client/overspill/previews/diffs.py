"""Find the files in a diff. Its other lines quote code, in which a word for failure says nothing.

A diff is recognised by its beginning, which may stand behind the message of a commit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill.previews.candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGINNING_CHARS: Final = 8_000
_BEGINNING: Final = re.compile(
    r"(?:commit [0-9a-f]{7,64}\b.*\n(?:(?:[A-Z]\w{1,15}: | {4}).*\n|\n)*)?diff --git .+\n(?:[a-z].*\n)*--- "
)
_FILE: Final = "diff --git "
_QUOTING: Final = ("+", "-", " ", "@@ ")
_MAX_FILES: Final = 200


def is_diff(text: str) -> bool:
    """Return whether `text` begins as a diff of git does."""
    return text.startswith((_FILE, "commit ")) and _BEGINNING.match(text[:_BEGINNING_CHARS]) is not None


def quotes(text: str, item: Candidate) -> bool:
    """Return whether a line of a diff is code, changed or not, or names the function around it.

    The item may be a part of a long line.
    """
    return text.startswith(_QUOTING, text.rfind("\n", 0, item.begin) + 1)


def files(text: str, stop: int, start: int) -> Iterator[Candidate]:
    """Yield the first line of each file in `text[stop:start]`, of 200 files at most."""
    before = max(0, stop - 1)
    for _ in range(_MAX_FILES):
        before = text.find(f"\n{_FILE}", before, start)
        end = text.find("\n", before + 1, start)
        if before < 0 or end < 0:
            return
        yield Candidate(before + 1, end + 1, text[before + 1 : end], 0, 1, before + 1)
        before = end
