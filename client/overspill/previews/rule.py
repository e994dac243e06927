"""A rule: when a line meets it, how much such a line matters, and where the reason of the failure stands.

The weights are on one scale from 0 to 11: the preview shows lines of the highest weight first.
"""

from __future__ import annotations

import functools
import re
from enum import Enum, auto
from typing import Final, NamedTuple

DECISIVE: Final = 10
"""The line itself says why something failed."""
MARKED: Final = 8
"""The line says that something failed: a log level, a summary, an exit code."""
SAID: Final = 6
"""The line has a word for failure, perhaps about something else."""
HINT: Final = 4
"""The line has a word that often stands near a failure."""
WARNING: Final = 3
UNLIKE: Final = 2.5
"""The line has no such word, but hardly any other line is like it."""
CALM: Final = 2
"""The line has a word for failure, but its log level says that all is well."""


class Role(Enum):
    """The place of the reason: in the line itself, in the lines after it, or in the lines before it."""

    TELLS = auto()
    OPENS = auto()
    CLOSES = auto()


class Rule(NamedTuple):
    """A line meets a rule if it has one of `words`, and begins with `start` or has `pattern` anywhere.

    All are in lower case unless the rule `is_exact`. The patterns, if they are not empty, are compiled when
    they are first needed: most processes make no preview.
    """

    weight: float
    words: tuple[str, ...]
    start: str
    pattern: str
    is_exact: bool
    role: Role

    def is_met(self, text: str, lower: str) -> bool:
        """Return whether `text` meets the rule, if it has one of the words. `lower` is in lower case."""
        if not self.is_exact:
            text = lower
        if self.start and _compiled(self.start).match(text):
            return True
        return bool(self.pattern) and _compiled(self.pattern).search(text) is not None


def rule(
    weight: float,
    words: str,
    *patterns: str,
    start: str = "",
    is_exact: bool = False,
    role: Role = Role.TELLS,
) -> Rule:
    """Return a rule. Its `words` are separated by `|`; its `patterns` are alternatives.

    A pattern for the start of a line belongs in `start`: there it takes a tenth of the time.
    """
    return Rule(weight, tuple(words.split("|")), start, "|".join(patterns), is_exact, role)


_compiled: Final = functools.cache(re.compile)


def at_word(alternatives: str, rest: str = "", *, not_after: str = r"\w") -> str:
    r"""Return a pattern that matches what `(?<!not_after)(?:alternatives)rest` does, but is found faster.

    By default that is what `\b(?:alternatives)rest` matches. Every alternative begins with a letter or a
    digit, and has no `|` inside. `re` searches much faster for that character than for what is before it.
    """
    endings: dict[str, list[str]] = {}
    for each in alternatives.split("|"):
        endings.setdefault(each[0], []).append(each[1:])
    return "|".join(
        rf"{first}(?<!{not_after}{first})(?:{'|'.join(ends)}){rest}" for first, ends in endings.items()
    )
