"""Finds where secrets may be: one cheap pass over the text for each anchor, however many rules there are.

Most places of an anchor cost no Python: the pass's pattern first looks at what stands around the anchor.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from overspill.reading.lock_free import cached_property
from overspill.redaction.rule import LONG_WORD, NEIGHBOURS, Probe, SecretPass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.redaction.rule import FoundSecret, SecretRule

_NO_HANDLE: Final = "(?<!ap_)"
"""Handles of captures, `cap_…`, are frequent and look like tokens."""
_RARE: Final = 1_300
"""An anchor that comes at most once in this many characters is searched for alone, without its pattern."""
_FEW: Final = 8
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
        get = self._places.get
        for at in self._positions(text, start, end):
            before, after = text[max(0, at - NEIGHBOURS) : at], text[at + 1 : at + 1 + NEIGHBOURS]
            for prefix, place, probe in (*get(before, ()), *get(after, ()), *get("", ())):
                if text.startswith(prefix, at - place) and (found := probe.find(text, at)) is not None:
                    yield found

    def _positions(self, text: str, start: int, end: int) -> Iterator[int]:
        """Yield where the anchor stands among the characters that a prefix has beside it.

        While it is rare, `str.find` is faster.
        """
        first = begin = at = text.find(self.anchor, start, end)
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
    long = [probe for probe in probes if probe.word and not probe.next]
    by_next: dict[str, list[Probe]] = defaultdict(list)
    for probe in probes:
        if probe not in long:
            by_next[probe.next].append(probe)
    tail = f"(?={LONG_WORD})" + (_NO_HANDLE if anchor == "_" else "")
    alternatives = _behind(literal, long, tail)
    alternatives += _behind(literal, by_next.pop("", []))
    # What stands behind the anchor is looked at before it: most places fail there, in a few nanoseconds.
    alternatives += [
        re.escape(after) + _one_of(_behind(literal + re.escape(after), by_next[after]))
        for after in sorted(by_next)
    ]
    return literal + _one_of(alternatives)


def _behind(literal: str, probes: list[Probe], tail: str = "") -> list[str]:
    """Return the patterns of what stands before a matched literal, at its end, and as `tail` behind it."""
    alike = [probe for probe in probes if not probe.lead and len(probe.previous) == NEIGHBOURS]
    others = [probe for probe in probes if probe not in alike]
    ends = dict.fromkeys(probe.lead + re.escape(probe.previous) for probe in others)
    before = [_one_head(literal, alike, tail)] if alike else []
    return before + [f"(?<={end}{literal}){tail}" for end in ends]


def _one_head(literal: str, probes: list[Probe], tail: str) -> str:
    """Return a pattern of a prefix up to a literal. What most places fail at comes first."""
    pairs = {probe.previous for probe in probes}
    classes = "".join(f"[{re.escape(''.join(sorted(set(each))))}]" for each in zip(*pairs, strict=True))
    by_size: dict[int, set[str]] = defaultdict(set)
    for probe in probes:
        by_size[probe.place].add(probe.prefix[: probe.place])
    heads = _one_of([_ends(literal, by_size[size]) for size in sorted(by_size)])
    return f"(?<={classes}{literal}){tail}{_ends(literal, pairs)}{heads}"


def _ends(literal: str, texts: set[str]) -> str:
    return f"(?<={_one_of(sorted(map(re.escape, texts)))}{literal})"


def _one_of(patterns: list[str]) -> str:
    return patterns[0] if len(patterns) == 1 else "(?:" + "|".join(patterns) + ")"
