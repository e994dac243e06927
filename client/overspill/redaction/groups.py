"""Finds where secrets may be: one cheap pass over the text for each anchor, however many rules there are.

Most places of an anchor cost no Python: the pass's pattern first looks at what stands around the anchor.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from overspill.reading.lock_free import cached_property
from overspill.redaction.rule import FREQUENT, NEIGHBOURS, Probe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.redaction.rule import FoundSecret, SecretRule

_LONG_WORD: Final = r"(?=[\w+/%-]{14})"
_NO_HANDLE: Final = "(?<!ap_)"
"""Handles of captures, `cap_…`, are frequent and look like tokens."""
_RARE: Final = 550
"""An anchor that comes at most once in this many characters is searched for alone, without its pattern."""
_FEW: Final = 16
"""How many anchors may stand closer together than that."""


class AnchorGroup:
    """The rules whose secrets are found by one anchor."""

    def __init__(self, anchor: str, probes: list[Probe]) -> None:
        self.anchor: str = anchor
        self.is_behind: bool = any(probe.behind for probe in probes)
        """Whether its secrets are searched for before the anchor."""
        self._probes: dict[tuple[str, str], list[Probe]] = defaultdict(list)
        """By the characters beside the anchor, as `Probe.beside` has them."""
        for probe in probes:
            self._probes[probe.beside].append(probe)
        self._source = _anchor_pattern(anchor, probes)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._source, re.ASCII)

    @cached_property
    def _literal(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.anchor))

    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the secrets whose anchor is between `start` and `end`."""
        first = self._first(text, start, end)
        if first < 0:
            return
        behind, get = len(self.anchor), self._probes.get
        for at in self._positions(text, start, first, end):
            before, after = text[max(0, at - NEIGHBOURS) : at], text[at + behind : at + behind + NEIGHBOURS]
            for beside in ((before, after), (before, ""), ("", after), ("", "")):
                for probe in get(beside, ()):
                    if (found := probe.find(text, at)) is not None:
                        yield found

    def _first(self, text: str, start: int, end: int) -> int:
        """Return where the anchor stands first, negative if nowhere."""
        if len(self.anchor) == 1 or self.anchor[0].islower():
            return text.find(self.anchor, start, end)
        # `re` looks for the first character alone: that takes half the time if it is not a small letter.
        found = self._literal.search(text, start, end)
        return -1 if found is None else found.start()

    def _positions(self, text: str, start: int, at: int, end: int) -> Iterator[int]:
        """Yield where the anchor stands among the characters that a prefix has beside it."""
        begin = at
        if self.anchor not in FREQUENT:
            find, match, count = text.find, self._pattern.match, 0
            while at >= 0 and count * _RARE <= at - start + _FEW * _RARE:
                if match(text, at) is not None:
                    yield at
                begin, count = at + 1, count + 1
                at = find(self.anchor, begin, end)
        if at >= 0:
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
        return literal + (_LONG_WORD if all(probe.has_long_word for probe in probes) else "")
    last = [probe for probe in probes if not probe.next and anchor in FREQUENT]
    by_next: dict[str, list[Probe]] = defaultdict(list)
    for probe in probes:
        if probe not in last:
            by_next[re.escape(probe.next)].append(probe)
    alternatives = {following + _behind(literal + following, each) for following, each in by_next.items()}
    if last:
        alternatives.add(f"(?<={_classes(last)}{literal}){_LONG_WORD}{_NO_HANDLE if anchor == '_' else ''}")
    return literal + _one_of(alternatives)


def _one_of(patterns: set[str]) -> str:
    return "(?:" + "|".join(sorted(patterns)) + ")"


def _behind(literal: str, probes: list[Probe]) -> str:
    """Return the pattern of what stands before and at the end of a literal that has been matched."""
    alike = [probe for probe in probes if not probe.lead and len(probe.previous) == NEIGHBOURS]
    patterns = {
        f"(?<={probe.lead}{re.escape(probe.previous)}{literal})" for probe in probes if probe not in alike
    }
    if alike:
        patterns.add(f"(?<={_classes(alike)}{literal})")
    return _one_of(patterns)


def _classes(probes: list[Probe]) -> str:
    """Return a pattern for the two characters before the anchor. It does not say which go together."""
    pairs = [probe.previous for probe in probes]
    return "".join(f"[{''.join(sorted({pair[at] for pair in pairs}))}]" for at in range(NEIGHBOURS))
