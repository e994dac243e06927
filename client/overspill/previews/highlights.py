"""The lines that matter in the part of a text that a preview leaves out: what says why something failed.

Those that are alike count as one. What is looked at, and for how long, is bounded whatever is in the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import candidates, novelty, rules, spans, surroundings, vocabulary
from overspill.previews.folding import masked
from overspill.previews.prefixes import message
from overspill.previews.rules import Role
from overspill.text import measure
from overspill.text.sanitize import cut_after, cut_before, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from overspill.previews.candidates import Candidate
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.vocabulary import LineVerdict

_BEFORE: Final = 60
_LONGEST: Final = 220
"""Characters of one line that are shown, and how many of them stand before what makes it matter."""
_LONGEST_PREFIX: Final = 24
_JUDGED: Final = 320
"""Characters of a line that decide how much it matters."""
_RARE: Final = 10
_LEAST_COMMON: Final = 100
_SURROUNDED: Final = 8
"""How many of the most important lines are shown with those around them."""
_OFFERED: Final = 60
"""How many lines are offered at most, besides those around them."""
_PER_RULE: Final = 0.5
_MOST_PER_RULE: Final = 6
"""What a line loses for each more important one of the same rule, and for how many at most."""
_LESSER: Final = 2
"""How many of the lines that hardly matter are shown beside those that do."""
_LATE: Final = 0.75
"""What the last line of all gains over the first where a step failed: the end says what became of it."""
_LED_UP: Final = 4_000
_LEADING_UP: Final = 1
"""What a line gains that stands so few characters before the end of a step that failed."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """`begin` and `end` are the line's place in the text that was searched; `text` is safe to show."""

    line_number: int
    begin: int
    end: int
    text: str
    weight: float = 0

    @property
    def cost(self) -> int:
        """Return the bytes that it takes, with the end of its line."""
        return measure.size(self.text) + 1


class _Group(NamedTuple):
    verdict: LineVerdict
    first: Candidate
    last: int
    lines: int


def highlights(excerpt: Excerpt, stop: int, start: int, *, max_bytes: int, max_lines: int) -> list[Highlight]:
    """Lines of `excerpt.text[stop:start]` that matter, in their order.

    `max_bytes` and `max_lines` bound all of them together, the newline after each included.
    """
    search = candidates.CandidateSearch(excerpt, stop, start)
    found = search.usual()
    verdict_of = _Verdicts()
    groups = _groups(found.candidates, verdict_of)
    if not _have_reason(groups) and not spans.is_short(stop, start):
        found = search.further()
        groups = _groups(found.candidates, verdict_of)
    if not _have_reason(groups) and (unlike := novelty.find_unlike(excerpt, stop, start)):
        groups = _groups(sorted([*found.candidates, *unlike], key=attrgetter("begin")), verdict_of)
    ranked = _ranked(groups)[:_OFFERED]
    shown: dict[int, Highlight] = {}
    for item in _offered(excerpt, ranked, (stop, start), is_all=found.is_all):
        if len(shown) == max_lines:
            break
        if item.begin not in shown and item.cost <= max_bytes:
            max_bytes -= item.cost
            shown[item.begin] = item
    return [shown[begin] for begin in sorted(shown)]


def _have_reason(groups: list[_Group]) -> bool:
    return any(group.verdict.weight >= rules.MARKED for group in groups)


class _Verdicts:
    """Verdicts, each of which is found once: a text may be searched several times."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, bool], LineVerdict | None] = {}

    def __call__(self, item: Candidate) -> LineVerdict | None:
        key = item.begin, item.word_at, item.is_unlike
        if key not in self._known:
            self._known[key] = _verdict(item)
        return self._known[key]


def _groups(found: Iterable[Candidate], verdict_of: _Verdicts) -> list[_Group]:
    """What is alike together, each under its first line, in the order of those."""
    groups: dict[str, _Group] = {}
    for item in found:
        verdict = verdict_of(item)
        if verdict is None:
            continue
        key = f"{verdict.rule} {masked(item.line[: 2 * _LONGEST])}"
        known = groups.get(key)
        groups[key] = (
            _Group(verdict, item, item.last, item.lines)
            if known is None
            else known._replace(last=max(known.last, item.last), lines=known.lines + item.lines)
        )
    return list(groups.values())


def _verdict(item: Candidate) -> LineVerdict | None:
    verdict = vocabulary.judge(_judged(item))
    if verdict is None and item.is_unlike:
        return vocabulary.LIKE_NO_OTHER
    if vocabulary.is_red(item.line) and (verdict is None or verdict.weight < vocabulary.COLOURED.weight):
        return vocabulary.COLOURED
    return verdict


def _judged(item: Candidate) -> str:
    """The part of a line that decides how much it matters: the beginning, or that around the word."""
    begin = 0 if item.word_at < _LONGEST else item.word_at - _BEFORE
    return item.line[begin : begin + _JUDGED]


def _ranked(groups: list[_Group]) -> list[_Group]:
    """The most important first: by weight, less where there are many alike, or many of the same kind."""
    least = vocabulary.least_shown(max((group.verdict.weight for group in groups), default=0))
    ends = [group.last for group in groups if group.verdict.role is Role.CLOSES]
    whole = 1 + max((group.last for group in groups), default=0)
    late = _LATE / whole if ends else 0
    weights = {id(group): _importance(group, ends) + late * group.last for group in groups}
    order: Counter[int] = Counter()
    ranked = []
    for group in sorted(_from_both_ends(groups), key=lambda group: weights[id(group)], reverse=True):
        rank = min(order[group.verdict.rule], _MOST_PER_RULE)
        order[group.verdict.rule] += 1
        ranked.append((weights[id(group)] - _PER_RULE * rank, group))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    groups = [group for _, group in ranked]
    return [group for group in groups if group.verdict.weight >= least] + [
        group for group in groups if group.verdict.weight < least
    ][:_LESSER]


def _importance(group: _Group, ends: list[int]) -> float:
    leads = any(0 < end - group.last <= _LED_UP for end in ends)
    return group.verdict.weight - _commonness(group.lines) + _LEADING_UP * leads


def _commonness(count: int) -> int:
    return 0 if count < _RARE else 1 if count < _LEAST_COMMON else 2


def _from_both_ends(groups: list[_Group]) -> Iterator[_Group]:
    """First, last, second, last but one, and so on."""
    half = (len(groups) + 1) // 2
    pairs = zip(groups[:half], [*reversed(groups[half:]), *([None] * (len(groups) % 2))], strict=True)
    return (group for group in chain.from_iterable(pairs) if group is not None)


def _offered(
    excerpt: Excerpt, ranked: list[_Group], within: tuple[int, int], *, is_all: bool
) -> Iterator[Highlight]:
    """What to show, in the order of importance, with lines around the most important ones."""
    number_at = excerpt.numbering()
    for place, group in enumerate(ranked):
        yield _highlight(group, number_at, is_all=is_all)
        if place < _SURROUNDED and group.verdict.weight >= rules.SAID and group.lines < _RARE:
            around = surroundings.surrounding_lines(excerpt.text, group.first, group.verdict.role, within)
            for offset, begin, end in around:
                number = number_at(group.first.begin) + offset
                text = f"line {number:,}: {_shown(excerpt.text[begin:end], 0)}"
                yield Highlight(number, begin, end, text)


def _highlight(group: _Group, number_at: Callable[[int], int], *, is_all: bool) -> Highlight:
    item, more = group.first, group.lines - 1
    number = number_at(item.begin)
    text = f"line {number:,}: {_shown(item.line, item.word_at)}"
    if more:
        least = "" if is_all else "at least "
        last = number_at(group.last)
        text += f" (and {least}{measure.plural(more, 'more line')} like it, to line {last:,})"
    return Highlight(number, item.begin, item.end, text, group.verdict.weight)


def _shown(line: str, place: int) -> str:
    """What surrounds `place`, on one line, safe to show.

    Without a long prefix, and what a terminal would have overwritten.
    """
    line = line.rstrip()
    overwritten = line.rfind("\r", 0, place + 1) + 1
    line, place = line[overwritten:], place - overwritten
    said = message(line)
    if len(line) - len(said) > _LONGEST_PREFIX and line.endswith(said):
        line, place = said, max(0, place - len(line) + len(said))
    if len(line) <= _LONGEST:
        return sanitize(line).strip()
    begin = cut_after(line, max(0, min(place - _BEFORE, len(line) - _LONGEST)))
    end = cut_before(line, begin + _LONGEST)
    return f"{'…' * (begin > 0)}{sanitize(line[begin:end]).strip()}{'…' * (end < len(line))}"
