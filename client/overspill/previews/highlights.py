"""Find the lines that matter in what a preview leaves out: those that say why something failed.

Lines that are alike count as one. The work is bounded, whatever is in the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import candidates, diffs, novelty, rule, spans, surroundings, vocabulary
from overspill.previews.folding import comparable
from overspill.previews.prefixes import message
from overspill.previews.rule import Role
from overspill.text import measure, quantities
from overspill.text.sanitize import cut_after, cut_before, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from overspill.previews.candidates import Candidate
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.vocabulary import LineVerdict

_SHOWN_CHARS: Final = 220
_CHARS_BEFORE_WORD: Final = 60
"""The characters of a line that are shown, and how many of them stand before the word that matters."""
_KEPT_PREFIX_CHARS: Final = 24
_JUDGED_CHARS: Final = 320
"""Characters of a line that decide how much it matters."""
_MANY_ALIKE: Final = 10
_VERY_MANY_ALIKE: Final = 100
_WITH_SURROUNDINGS: Final = 8
"""How many of the most important lines are shown with the lines around them."""
_MAX_OFFERED: Final = 60
"""The most lines that are offered, not counting those around them."""
# What changes the weight of a line:
_LOSS_PER_RULE: Final = 0.5
_MAX_LOSSES: Final = 6
"""The weight that a line loses for each more important line of the same rule, and the most such lines."""
_MAX_LESSER: Final = 2
"""How many lines that hardly matter are shown beside lines that do."""
_GAIN_OF_LAST: Final = 0.75
"""If a step failed, the last line gains so much over the first: the end says what became of the step."""
_LEADING_CHARS: Final = 4_000
_GAIN_OF_LEADING: Final = 1
"""The weight that a line gains if it is at most `_LEADING_CHARS` before the end of a failed step."""


_FILE: Final = vocabulary.LineVerdict(rule.HINT, -3)
"""The first line of a file in a diff."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A line that matters, between `begin` and `end` of the text that was searched.

    `text` is safe to show. A line around a line that matters has that line in `matters`.
    """

    line_number: int
    begin: int
    end: int
    text: str
    weight: float = 0
    matters: Highlight | None = None

    @property
    def cost(self) -> int:
        """Return the bytes that it takes, with the end of its line."""
        return measure.size(self.text) + 1

    def is_between(self, stop: int, start: int) -> bool:
        """Return whether a part of it lies in `text[stop:start]`, and so does the line that matters."""
        is_inside = self.end > stop and self.begin < start
        return is_inside and (self.matters is None or self.matters.is_between(stop, start))


class _Group(NamedTuple):
    verdict: LineVerdict
    first: Candidate
    last: int
    lines: int


def highlights(excerpt: Excerpt, stop: int, start: int, *, max_bytes: int, max_lines: int) -> list[Highlight]:
    """Return the lines of `excerpt.text[stop:start]` that matter, in the order of the text.

    `max_bytes` and `max_lines` limit all of them together, with a newline after each.
    """
    groups, is_all = (_groups_of_diff if diffs.is_diff(excerpt.text) else _groups_of)(excerpt, stop, start)
    ranked = _ranked(groups)[:_MAX_OFFERED]
    shown: dict[int, Highlight] = {}
    for item in _offered(excerpt, ranked, (stop, start), is_all=is_all):
        if len(shown) == max_lines:
            break
        if item.begin not in shown and item.cost <= max_bytes:
            max_bytes -= item.cost
            shown[item.begin] = item
    return [shown[begin] for begin in sorted(shown)]


def _groups_of(excerpt: Excerpt, stop: int, start: int) -> tuple[list[_Group], bool]:
    """Return the groups of lines that matter, and whether they are all that there are."""
    search = candidates.CandidateSearch(excerpt, stop, start)
    found = search.usual()
    verdicts = _Verdicts()
    groups = _groups(found.candidates, verdicts)
    if not _have_reason(groups) and not spans.is_short(stop, start):
        found = search.further()
        groups = _groups(found.candidates, verdicts)
    if not _have_reason(groups) and (unlike := novelty.find_unlike(excerpt, stop, start)):
        groups = _groups(sorted([*found.candidates, *unlike], key=attrgetter("begin")), verdicts)
    return groups, found.is_all


def _groups_of_diff(excerpt: Excerpt, stop: int, start: int) -> tuple[list[_Group], bool]:
    """Return the files of a diff, and what matters in lines that are not of the diff."""
    found = candidates.CandidateSearch(excerpt, stop, start).usual()
    content = [item for item in found.candidates if not diffs.quotes(excerpt.text, item)]
    files = [_Group(_FILE, item, item.begin, 1) for item in diffs.files(excerpt.text, stop, start)]
    return [*_groups(content, _Verdicts()), *files], found.is_all


def _have_reason(groups: list[_Group]) -> bool:
    return any(group.verdict.weight >= rule.MARKED for group in groups)


class _Verdicts:
    """Remembers verdicts, because a text may be searched several times."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, bool], LineVerdict | None] = {}

    def of(self, items: Iterable[Candidate]) -> list[tuple[LineVerdict, Candidate]]:
        """Return the items that matter, each with its verdict."""
        keyed = {(item.begin, item.word_at, item.is_unlike): item for item in items}
        new = {key: item for key, item in keyed.items() if key not in self._known}
        self._known.update(zip(new, _verdicts([*new.values()]), strict=True))
        return [(verdict, item) for key, item in keyed.items() if (verdict := self._known[key]) is not None]


def _groups(found: Iterable[Candidate], verdicts: _Verdicts) -> list[_Group]:
    """Group candidates that are alike, each group under its first line, in the order of the text."""
    judged = verdicts.of(found)
    groups: dict[tuple[int, str], _Group] = {}
    names = comparable([item.line[: 2 * _SHOWN_CHARS] for _, item in judged])
    for (verdict, item), name in zip(judged, names, strict=True):
        key = verdict.rule, name
        group = groups.get(key)
        if group is None:
            groups[key] = _Group(verdict, item, item.last, item.lines)
        elif not item.is_unlike or item.begin > group.last:  # else it counts already: its word was found
            last, lines = max(group.last, item.last), group.lines + item.lines
            groups[key] = group._replace(last=last, lines=lines)
    return list(groups.values())


def _verdicts(items: Sequence[Candidate]) -> list[LineVerdict | None]:
    judged = vocabulary.judge([_judged(item) for item in items])
    return [_verdict(item, verdict) for item, verdict in zip(items, judged, strict=True)]


def _verdict(item: Candidate, verdict: LineVerdict | None) -> LineVerdict | None:
    if verdict is None and item.is_unlike:
        return vocabulary.LIKE_NO_OTHER
    if vocabulary.is_red(item.line) and (verdict is None or verdict.weight < vocabulary.COLOURED.weight):
        return vocabulary.COLOURED
    return verdict


def _judged(item: Candidate) -> str:
    """Return the part of a line that decides how much it matters: its beginning, or around the word."""
    begin = 0 if item.word_at < _SHOWN_CHARS else item.word_at - _CHARS_BEFORE_WORD
    return item.line[begin : begin + _JUDGED_CHARS]


def _ranked(groups: list[_Group]) -> list[_Group]:
    """Sort by weight, the most important first. Many alike, or many of the same rule, weigh less."""
    least = vocabulary.least_shown(max((group.verdict.weight for group in groups), default=0))
    ends = [group.last for group in groups if group.verdict.role is Role.CLOSES]
    whole = 1 + max((group.last for group in groups), default=0)
    late = _GAIN_OF_LAST / whole if ends else 0
    weights = {id(group): _importance(group, ends) + late * group.last for group in groups}
    order: Counter[int] = Counter()
    ranked = []
    for group in sorted(_from_both_ends(groups), key=lambda group: weights[id(group)], reverse=True):
        rank = min(order[group.verdict.rule], _MAX_LOSSES)
        order[group.verdict.rule] += 1
        ranked.append((weights[id(group)] - _LOSS_PER_RULE * rank, group))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    groups = [group for _, group in ranked]
    return [group for group in groups if group.verdict.weight >= least] + [
        group for group in groups if group.verdict.weight < least
    ][:_MAX_LESSER]


def _importance(group: _Group, ends: list[int]) -> float:
    leads = any(0 < end - group.last <= _LEADING_CHARS for end in ends)
    return group.verdict.weight - _commonness(group.lines) + _GAIN_OF_LEADING * leads


def _commonness(count: int) -> int:
    return 0 if count < _MANY_ALIKE else 1 if count < _VERY_MANY_ALIKE else 2


def _from_both_ends(groups: list[_Group]) -> Iterator[_Group]:
    """Yield the first, the last, the second, the last but one, and so on."""
    half = (len(groups) + 1) // 2
    pairs = zip(groups[:half], [*reversed(groups[half:]), *([None] * (len(groups) % 2))], strict=True)
    return (group for group in chain.from_iterable(pairs) if group is not None)


def _offered(
    excerpt: Excerpt, ranked: list[_Group], within: tuple[int, int], *, is_all: bool
) -> Iterator[Highlight]:
    """Yield what to show, the most important first, with the lines around the most important ones."""
    number_at = excerpt.numbering()
    for place, group in enumerate(ranked):
        matters = _highlight(group, number_at, is_all=is_all)
        yield matters
        if place < _WITH_SURROUNDINGS and group.verdict.weight >= rule.SAID and group.lines < _MANY_ALIKE:
            around = surroundings.surrounding_lines(excerpt.text, group.first, group.verdict.role, within)
            for offset, begin, end in around:
                number = matters.line_number + offset
                text = f"line {number:,}: {_excerpt_around(excerpt.text[begin:end], 0)}"
                yield Highlight(number, begin, end, text, matters=matters)


def _highlight(group: _Group, number_at: Callable[[int], int], *, is_all: bool) -> Highlight:
    item, more = group.first, group.lines - 1
    number = number_at(item.begin)
    text = f"line {number:,}: {_excerpt_around(item.line, item.word_at)}"
    if more:
        least = "" if is_all else "at least "
        last = number_at(group.last)
        text += f" (and {least}{quantities.plural(more, 'more line')} like it, to line {last:,})"
    return Highlight(number, item.begin, item.end, text, group.verdict.weight)


def _excerpt_around(line: str, place: int) -> str:
    """Return the part of a line around its word, safe to show.

    Leaves out a long prefix, as a time, and what a terminal would have overwritten.
    """
    line = line.rstrip()
    overwritten = line.rfind("\r", 0, place + 1) + 1
    line, place = line[overwritten:], place - overwritten
    content = message(line)
    if len(line) - len(content) > _KEPT_PREFIX_CHARS and line.endswith(content):
        line, place = content, max(0, place - len(line) + len(content))
    if len(line) <= _SHOWN_CHARS:
        return sanitize(line).strip()
    begin = cut_after(line, max(0, min(place - _CHARS_BEFORE_WORD, len(line) - _SHOWN_CHARS)))
    end = cut_before(line, begin + _SHOWN_CHARS)
    return f"{'…' * (begin > 0)}{sanitize(line[begin:end]).strip()}{'…' * (end < len(line))}"
