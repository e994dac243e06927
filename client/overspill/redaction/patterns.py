"""Secrets that a user names: patterns of their own, and literal values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill.redaction.rule import FoundSecret, SecretPass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST_MATCH: Final = 1_024
_MOST_ALTERNATIVES: Final = 4_096
"""In how many ways the repetitions and alternatives of a pattern may share out a text between them."""
_MOST_PATTERN_CHARS: Final = 1_024
_KIND: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

# An escape, or a class such as [^]a-z]: neither holds an operator.
_CLASS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d*,\}")
# A `?` that makes something optional, and is not the lazy or possessive mark of a quantifier.
_OPTIONAL: Final = re.compile(r"(?<![}?+])\?(?!\+)")
_BOUNDS: Final = re.compile(r"\{(\d*)(,?)(\d*)\}(\+?)|\?(\+?)")
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
# A comment may hide a quantifier from these checks, and spaces that mean nothing may stand before one.
_HIDING: Final = (
    (re.compile(r"\(\?#"), "has a comment; leave it out"),
    (re.compile(r"\(\?[a-wyz]*x"), "has the flag x; write it without spaces and comments"),
    (re.compile(r"\(\?\("), "depends on a group; write both cases out"),
)
_REFUSED_ESCAPE: Final = re.compile(r"\\[1-9AZz]")
# The beginnings of groups that are more than a bracket: named, lookaround, flags, atomic.
_SPECIAL: Final = re.compile(r"\(\?(?:P<\w+>|<?[=!]|[a-zA-Z-]*:|>)")
_REFUSED: Final = (
    (re.compile(r"\)\{"), "repeats a group; write the repetition out"),
    (re.compile(r"\(\?P="), "has a back-reference; write what the group matches once more"),
    (re.compile(r"[$^]"), "has ^ or $; a text that comes in chunks has no beginning and no end to look at"),
)


class PatternPass(SecretPass):
    """A pattern of the user, which takes a pass of its own over every text."""

    def __init__(self, kind: str, pattern: str) -> None:
        check_pattern(kind, pattern)
        self._kind = kind
        self._pattern = re.compile(_looked_for(pattern))

    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the secrets that begin between `start` and `end`. If the pattern has a group, that is one."""
        for match in self._pattern.finditer(text, start):
            if match.start() >= end:
                return
            group = 2 if self._pattern.groups > 1 and match.start(2) >= 0 else 1
            first, last = match.span(group)
            if last > first:
                yield FoundSecret(first, last, self._kind, None)


class ValuePass(SecretPass):
    """A literal value that is secret."""

    def __init__(self, kind: str, value: str) -> None:
        self._kind, self._value = kind, value

    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the places of the value that begin between `start` and `end`."""
        size = len(self._value)
        at = text.find(self._value, start, end + size)
        while 0 <= at < end:
            yield FoundSecret(at, at + size, self._kind, None)
            at = text.find(self._value, at + 1, end + size)

    def has_none(self, text: str) -> bool:
        """Return whether the value is not in a text."""
        return self._value not in text


def _looked_for(pattern: str) -> str:
    """Return the pattern that finds every place, also those within others."""
    return f"(?=({pattern}))"


def check_patterns(patterns: Mapping[str, str]) -> None:
    """Raise `ValueError` for a pattern that does not compile, or that might take long."""
    for kind, pattern in patterns.items():
        check_pattern(kind, pattern)


def check_pattern(kind: str, pattern: str) -> None:
    """Raise `ValueError` for a kind that is not a plain name, or a pattern that might take long.

    What a pattern matches has to be bounded, so that it is found across chunks; and a pattern must not be
    able to try many ways to match the same text.
    """
    if not _KIND.fullmatch(kind):
        raise ValueError(f"the kind {kind!r} of a secret has to be lowercase letters, digits and dashes")
    try:
        re.compile(_looked_for(pattern))
    except re.error as error:
        raise ValueError(f"the pattern of {kind} is not a valid pattern: {error}") from error
    if problem := _problem(pattern):
        raise ValueError(f"the pattern of {kind} {problem}")


def _problem(pattern: str) -> str:
    """Return what is wrong with a pattern; empty if nothing is."""
    plain = _CLASS.sub("x", pattern)
    if len(pattern) > _MOST_PATTERN_CHARS:
        return f"has {len(pattern)} characters; {_MOST_PATTERN_CHARS} is the most"
    refused = [(each, _ESCAPE.sub("x", pattern)) for each in _HIDING] + [(each, plain) for each in _REFUSED]
    for (construct, problem), text in refused:
        if construct.search(text):
            return problem
    if found := _REFUSED_ESCAPE.search(pattern):
        return f"has {found[0]}, which has no meaning in a text that comes in chunks"
    unbounded = _UNBOUNDED.search(_BOUNDS.sub(_kept_unbounded, plain))
    return f"has no bound: write {{1,64}} instead of {unbounded[0]}" if unbounded else _excess(plain)


def _excess(plain: str) -> str:
    """Return what is too much in a pattern whose repetitions are bounded; empty if nothing is."""
    plain = _SPECIAL.sub("(", plain)
    longest, count = len(plain), 1
    for alternatives in re.split(r"[()]", plain):
        count *= alternatives.count("|") + 1
    for low, comma, high, possessive, _ in _BOUNDS.findall(plain):
        most, least = int(high or low or 0), int(low or 0)
        longest += most
        count *= most - least + 1 if comma and not possessive else 1
    count *= 2 ** len(_OPTIONAL.findall(plain))
    if longest > _LONGEST_MATCH:
        return f"matches about {longest} characters; {_LONGEST_MATCH} is the most"
    if count > _MOST_ALTERNATIVES:
        return "has several repetitions that can share a text in many ways; write {1,64}+ instead of {1,64}"
    return ""


def _kept_unbounded(match: re.Match[str]) -> str:
    """Return a quantifier if it has no bound."""
    return match[0] if match[2] and not match[3] else ""
