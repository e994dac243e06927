"""Finds where secrets may be: one cheap pass over the text for each anchor, however many rules there are.

Most places of an anchor cost no Python: the pass's pattern first looks at what stands around the anchor.
"""

from __future__ import annotations

import re
from collections import defaultdict
from string import hexdigits
from typing import TYPE_CHECKING, Final

from overspill.reading.lock_free import cached_property
from overspill.redaction.rule import LONG_WORD, NEIGHBOURS, Probe, SecretPass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.redaction.rule import FoundSecret, SecretRule

_NO_HANDLE: Final = "(?<!ap_)"
"""Handles of captures, `cap_…`, are frequent and look like tokens."""
_RARE: Final = 550
"""An anchor that comes at most once in this many characters is searched for alone, without its pattern."""
_FEW: Final = 16
"""How many anchors may stand closer together than that."""


class AnchorGroup(SecretPass):
    """The rules whose secrets are found by one anchor."""

    def __init__(self, anchor: str, probes: list[Probe]) -> None:
        self.anchor: str = anchor
        self.is_behind: bool = any(probe.behind for probe in probes)
        """Whether its secrets are searched for before the anchor."""
        self._places: dict[str, list[tuple[str, int, Probe]]] = defaultdict(list)
        """Prefixes, where their anchor is, and their probes, by the two characters beside it."""
        for probe in probes:
            self._places[probe.beside].append((probe.prefix, probe.place, probe))
        self._source = _anchor_pattern(anchor, probes)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._source, re.ASCII)

    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the secrets whose anchor is between `start` and `end`."""
        size, get = len(self.anchor), self._places.get
        for at in self._positions(text, start, end):
            before, after = text[max(0, at - NEIGHBOURS) : at], text[at + size : at + size + NEIGHBOURS]
            for prefix, place, probe in (*get(before, ()), *get(after, ()), *get("", ())):
                if text.startswith(prefix, at - place) and (found := probe.find(text, at)) is not None:
                    yield found

    def _positions(self, text: str, start: int, end: int) -> Iterator[int]:
        """Yield where the anchor stands among the characters that a prefix has beside it.

        While it is rare, `str.find` is faster: for one character, not for a word.
        """
        begin = start
        if len(self.anchor) == 1:
            first = at = text.find(self.anchor, start, end)
            count = 0
            while at >= 0 and count * _RARE <= at - first + _FEW * _RARE:
                if self._pattern.match(text, at) is not None:
                    yield at
                begin, count = at + 1, count + 1
                at = text.find(self.anchor, begin, end)
            if at < 0:
                return
        for found in self._pattern.finditer(text, begin):
            if (at := found.start()) >= end:
                return
            yield at


def groups_of(rules: Iterable[SecretRule]) -> list[AnchorGroup]:
    """Group the rules by their anchors."""
    probes: dict[str, list[Probe]] = defaultdict(list)
    for rule in rules:
        for prefix in rule.prefixes:
            probe = Probe(rule, prefix)
            probes[probe.anchor].append(probe)
    return [AnchorGroup(anchor, each) for anchor, each in probes.items()]


def _anchor_pattern(anchor: str, probes: list[Probe]) -> str:
    """Return a pattern that matches an anchor among the characters that a prefix has beside it."""
    literal = re.escape(anchor)
    if probes[0].is_word:
        return literal
    long = [probe for probe in probes if probe.word and not probe.next]
    by_next: dict[str, list[Probe]] = defaultdict(list)
    for probe in probes:
        if probe not in long:
            by_next[probe.next].append(probe)
    tail = f"(?={LONG_WORD})" + (_NO_HANDLE if anchor == "_" else "")
    alternatives = _behind(literal, long, tail)
    alternatives += _behind(literal, by_next.pop("", []))
    alternatives += [_ahead(literal, by_next)] if by_next else []
    return literal + _one_of(alternatives)


def _ahead(literal: str, by_next: dict[str, list[Probe]]) -> str:
    """Return the pattern of what stands behind an anchor, then before it. Most places fail at the first."""
    alternatives = [
        re.escape(after) + _one_of(_behind(literal + re.escape(after), probes))
        for after, probes in sorted(by_next.items())
    ]
    return f"(?={_classes(by_next)})" + _one_of(alternatives)


def _behind(literal: str, probes: list[Probe], tail: str = "") -> list[str]:
    """Return the patterns of what stands before a matched literal, at its end, and as `tail` behind it."""
    alike = [probe.previous for probe in probes if not probe.lead and len(probe.previous) == NEIGHBOURS]
    others = [probe for probe in probes if probe.lead or probe.previous not in alike]
    # Identifiers in hexadecimal digits are frequent.
    halves = ([pair for pair in alike if (pair[1] in hexdigits) is is_hex] for is_hex in (True, False))
    before = [
        f"(?<={_classes(pairs)}{literal}){tail}(?<={_pairs(pairs)}{literal})" for pairs in halves if pairs
    ]
    return before + [f"(?<={probe.lead}{re.escape(probe.previous)}{literal}){tail}" for probe in others]


def _classes(pairs: Iterable[str]) -> str:
    """Return a pattern that matches these pairs of characters. It does not say which go together."""
    return "".join(f"[{re.escape(''.join(sorted(set(each))))}]" for each in zip(*pairs, strict=False))


def _pairs(pairs: Iterable[str]) -> str:
    """Return a pattern that matches exactly these pairs of characters. It takes longer."""
    return _one_of(sorted({re.escape(pair) for pair in pairs}))


def _one_of(patterns: list[str]) -> str:
    return patterns[0] if len(patterns) == 1 else "(?:" + "|".join(patterns) + ")"
