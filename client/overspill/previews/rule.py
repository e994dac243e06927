"""What a rule is: when a line meets it, how much such a line matters, and where the reason stands."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

DECISIVE: Final = 10
MARKED: Final = 8
SAID: Final = 6
HINT: Final = 4
WARNING: Final = 3
UNLIKE: Final = 2.5
CALM: Final = 2


class Role(Enum):
    """Where the reason stands: in the line, in the lines after it, or in the lines before it."""

    TELLS = auto()
    OPENS = auto()
    CLOSES = auto()


class Rule(NamedTuple):
    """A line meets a rule if it has one of `words`, and begins with `start` or has `pattern` anywhere.

    All are in lower case unless the rule `is_exact`.
    """

    weight: float
    words: tuple[str, ...]
    start: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    is_exact: bool
    role: Role

    def meets(self, text: str) -> bool:
        """Return whether `text`, which has one of the words, meets the rule."""
        if self.start is not None and self.start.match(text):
            return True
        return self.pattern is not None and self.pattern.search(text) is not None


def rule(
    weight: float,
    words: str,
    *patterns: str,
    start: str = "",
    is_exact: bool = False,
    role: Role = Role.TELLS,
) -> Rule:
    """Return a rule whose words, as its alternative patterns, are separated by `|`.

    What can stand at the `start` only is tried there alone, which takes a tenth of the time.
    """
    first, anywhere = (re.compile(each) if each else None for each in (start, "|".join(patterns)))
    return Rule(weight, tuple(words.split("|")), first, anywhere, is_exact, role)


def at_word(alternatives: str) -> str:
    r"""Return what `\b(?:alternatives)` matches, in a form that is searched for by its first letters.

    Every alternative begins with a letter, and has no others inside it.
    """
    return "|".join(rf"{each[0]}(?<=\b{each[0]}){each[1:]}" for each in alternatives.split("|"))
