"""Finds where secrets may be with RE2: one pass over the text for all prefixes. Needs the extra `re2`.

If Hyperscan is installed, it searches long texts for the prefixes, in a fifth of the time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from re2 import _re2 as re2

from overspill.reading.finder import IS_AVAILABLE, Finder
from overspill.reading.literals import Literals
from overspill.reading.lock_free import cached_property
from overspill.redaction.groups import groups_of
from overspill.redaction.rule import Probe, SecretPass, anchor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.redaction.rule import FoundSecret, SecretRule

_ANYWHERE: Final = re2.RE2.Anchor.UNANCHORED
_MEMORY: Final = 64 * 1024 * 1024
_LONG: Final = 32 * 1024
"""Characters that are worth a search with Hyperscan: its first one takes some milliseconds."""
_FEW: Final = 64
_RARE: Final = 100
"""The groups are faster if a prefix comes more often than once in this many characters."""


class PrefixScan(SecretPass):
    """All rules with their prefixes in one automaton, except those whose secret stands before the prefix."""

    def __init__(self, rules: tuple[SecretRule, ...]) -> None:
        groups = groups_of(rules)
        self._behind = [group for group in groups if group.is_behind]
        self._groups = [group for group in groups if not group.is_behind]
        self._probes: dict[str, list[tuple[str, int, Probe]]] = defaultdict(list)
        for rule in rules:
            for prefix in () if rule.behind else rule.prefixes:
                self._probes[prefix[0]].append((prefix, anchor_of(prefix), Probe(rule, prefix)))
        prefixes = [prefix for each in self._probes.values() for prefix, _, _ in each]
        self._longest = max(map(len, prefixes))
        self._prefixes = tuple(dict.fromkeys(prefixes))
        probes = [each for found in self._probes.values() for each in found]
        self._match = re2.RE2("|".join(map(_with_word, probes)).encode(), _options()).Match

    @cached_property
    def _finder(self) -> Finder:
        return Finder(Literals(self._prefixes, ignore_case=False, is_whole=False))

    def find(self, text: str, start: int, end: int) -> Iterator[FoundSecret]:
        """Yield the secrets whose anchor is between `start` and `end`."""
        for group in self._behind:
            yield from group.find(text, start, end)
        data = _encoded(text)
        first = max(0, start - self._longest)
        places = self._places(data, first, end) if IS_AVAILABLE and end - first >= _LONG else None
        if places is None:
            yield from self._found_one_by_one(text, data, start, end)
        else:
            for place in places:
                yield from self._found_at(text, place, start, end)

    def has_none(self, text: str) -> bool:
        """Return whether there is none in a text, at once if it has no prefix."""
        for group in self._behind:
            if group.anchor in text and not group.has_none(text):
                return False
        data = _encoded(text)
        return self._match(_ANYWHERE, data, 0, len(data))[0][0] < 0 or super().has_none(text)

    def _places(self, data: bytes, first: int, end: int) -> list[int] | None:
        """Return where a prefix may begin, None if there are too many such places."""
        stop = min(len(data), end + self._longest)
        return self._finder.starts(data, first, stop, _FEW + (end - first) // _RARE)

    def _found_one_by_one(self, text: str, data: bytes, start: int, end: int) -> Iterator[FoundSecret]:
        """Look for one prefix after the other; if they are frequent, let each group look by itself."""
        match, size, count = self._match, len(data), 0
        first = at = max(0, start - self._longest)
        while at <= size and 0 <= (at := match(_ANYWHERE, data, at, size)[0][0]) < end:
            yield from self._found_at(text, at, start, end)
            at, count = at + 1, count + 1
            if count * _RARE > at - first + _FEW * _RARE:
                for group in self._groups:
                    yield from group.find(text, max(start, at), end)
                return

    def _found_at(self, text: str, at: int, start: int, end: int) -> Iterator[FoundSecret]:
        for prefix, anchor, probe in self._probes[text[at]]:
            if start <= at + anchor < end and text.startswith(prefix, at):
                found = probe.find(text, at + anchor)
                if found is not None:
                    yield found


def _encoded(text: str) -> bytes:
    """Return a text with one byte for each character."""
    return text.encode("latin-1", "replace")


def _with_word(place: tuple[str, int, Probe]) -> str:
    prefix, _, probe = place
    return re.escape(prefix) + probe.word


def _options() -> re2.RE2.Options:
    options = re2.RE2.Options()
    options.encoding = re2.RE2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = _MEMORY
    return options
