"""The rule for secrets of one kind: how they look, and the literal text by which they are found.

Patterns are ASCII, of bounded length, and never backtrack into a repetition of a repetition.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.lock_free import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANCHORS: Final = '~@!$%JKzVWBASG_-.wk="p+/:yr'
"""The characters by which secrets are found, those that are rare in logs and code first.

Each prefix has one of them.
"""
FREQUENT: Final = "_-.A"
"""Anchors that are frequent in code and logs. Prefixes that end with one are followed by a long word."""
LEAST_WORD: Final = 12
"""Characters of a word that are looked at before a rule is tried."""
LONG_WORD: Final = f"[A-Za-z0-9_+/%-]{{{LEAST_WORD}}}"
LONGEST_HEAD: Final = 5_000
"""The most characters that a pattern matches, with what it looks at behind the match."""
NEIGHBOURS: Final = 2
"""The characters of a prefix beside its anchor, to either side, by which it is told from other prefixes."""
FURTHEST_BEHIND: Final = 512
"""The most characters between an anchor and the beginning of its secret, to either side."""

QUOTE: Final = r"""\\{0,4}["']?"""
IS: Final = rf"{QUOTE}[ \t]{{0,8}}(?:[:=]|=>)[ \t]{{0,8}}{QUOTE}"
"""The text between a name and its value in JSON, YAML, TOML, source code and the shell."""

# A secret does not begin inside a word. Escapes of JSON, URLs and terminals are no part of the word.
_LEFT: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=[\d;]m)|(?<=\[m))"
)


class SecretRule(NamedTuple):
    """The form of the secrets of one `kind`.

    A secret begins with one of `prefixes`, and `body` is the pattern of what follows. If `body` has a group,
    that alone is the secret. `more` is the pattern of what continues a secret, as often as it comes; its
    group `end`, if it has one, ends the secret. `lead` is the pattern of `lead_width` characters before the
    prefix. `check` gets the text and the secret's span, and says whether it is one.

    If it `is_bounded`, it does not begin inside a word, and `word` is the pattern of the characters that
    follow a prefix which ends with a frequent one.

    With `behind`, the pattern ends with the prefix, and is searched for in the `behind` characters up to the
    prefix's end. `lead` then says what stands right before the prefix, so that most places need no search.
    """

    kind: str
    prefixes: tuple[str, ...]
    body: str
    more: str = ""
    lead: str = ""
    lead_width: int = 0
    behind: int = 0
    is_bounded: bool = True
    word: str = LONG_WORD
    check: Callable[[str, int, int], bool] | None = None


ContextRule: Final = partial(SecretRule, is_bounded=False)
"""A rule for secrets that the text before them reveals, even inside a word."""


class FoundSecret(NamedTuple):
    """A secret that is known from `start` to `end`. `more` is the pattern of what continues it."""

    start: int
    end: int
    kind: str
    more: re.Pattern[str] | None

    @property
    def has_lines(self) -> bool:
        """Whether the secret may go on after the end of a line."""
        return self.more is not None and "end" in self.more.groupindex

    @property
    def is_wrapped(self) -> bool:
        """Whether the secret may go on in the next line, if it fills the rest of its own line."""
        return self.more is not None and not self.has_lines and r"\n" in self.more.pattern


class SecretPass(ABC):
    """Finds secrets in a text."""

    @abstractmethod
    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the secrets with an anchor or a beginning between `start` and `end`."""

    def has_none(self, text: str) -> bool:
        """Return whether there is none in a text."""
        return next(self.find(text, 0, len(text)), None) is None


class Probe:
    """A rule with one of its prefixes, ready to be tried where the prefix's anchor stands."""

    def __init__(self, rule: SecretRule, prefix: str) -> None:
        at = anchor_of(prefix)
        self.prefix, self.place = prefix, at
        """The prefix, and where its anchor is in it."""
        self.previous: str = prefix[max(0, at - NEIGHBOURS) : at]
        self.anchor: str = prefix[at]
        self.next: str = prefix[at + 1 : at + 1 + NEIGHBOURS]
        self.beside: str = next((each for each in (self.previous, self.next) if len(each) == NEIGHBOURS), "")
        """By which characters beside the anchor it is looked for: those before it, or those behind it."""
        self.behind: int = rule.behind
        self.lead: str = "" if at else rule.lead
        """The pattern of what stands right before the anchor, if the prefix begins with the anchor."""
        self.word: str = rule.word if rule.is_bounded and prefix[-1] in FREQUENT else ""
        """The pattern of how the long word begins that follows the prefix; empty if none has to."""
        self._kind = rule.kind
        self._back = at + rule.lead_width
        self._check = rule.check
        self._rule = rule

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when its anchor was found first: most never are."""
        rule = self._rule
        if rule.behind:
            return re.compile(rule.body, re.ASCII)
        left = _LEFT if rule.is_bounded else ""
        word = f"(?={LONG_WORD})" if self.word else ""
        return re.compile(left + rule.lead + re.escape(self.prefix) + word + rule.body, re.ASCII)

    @cached_property
    def _more(self) -> re.Pattern[str] | None:
        return re.compile(self._rule.more, re.ASCII) if self._rule.more else None

    def find(self, text: str, at: int) -> FoundSecret | None:
        """Return the secret whose anchor is at `at`, or None."""
        if self.behind:
            match = self._pattern.search(text, max(0, at - self.behind), at + 1)
        else:
            match = self._pattern.match(text, at - self._back) if at >= self._back else None
        if match is None:
            return None
        start, end = match.span(self._pattern.groups)
        if self._check is not None and not self._check(text, start, end):
            return None
        return FoundSecret(start, end, self._kind, self._more)


def anchor_of(prefix: str) -> int:
    """Return where in a prefix its anchor is: the last place of its rarest character."""
    return next(prefix.rindex(char) for char in ANCHORS if char in prefix)
