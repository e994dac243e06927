"""The lines that matter in the part of a text that a preview leaves out: what says why something failed.

Those that are alike count as one. What is looked at, and for how long, is bounded whatever is in the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import measure
from overspill.plain import clean, cut_after, cut_before
from overspill.previews import candidates, distant, vocabulary
from overspill.previews.folding import form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from overspill.previews.candidates import Candidate, Found
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.vocabulary import Verdict

_BEFORE: Final = 60
_LONGEST: Final = 220
"""Characters of one line that are shown, and how many of them stand before what makes it matter."""
_RARE: Final = 10
_LEAST_COMMON: Final = 100
_SURROUNDED: Final = 2
"""How many of the most important lines are shown with those around them."""
_AROUND: Final = 2
_PER_RULE: Final = 0.5
_MOST_PER_RULE: Final = 6
"""What a line loses for each more important one of the same rule, and for how many at most."""
_LESSER: Final = 2
"""How many of the lines that hardly matter are shown beside those that do."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """`begin` and `end` are the line's place in the text that was searched; `text` is safe to show."""

    line_number: int
    begin: int
    end: int
    text: str

    @property
    def cost(self) -> int:
        return measure.size(self.text) + 1


class _Group(NamedTuple):
    verdict: Verdict
    first: Candidate
    last_number: int
    lines: int


def highlights(excerpt: Excerpt, stop: int, start: int, *, max_bytes: int, max_lines: int) -> list[Highlight]:
    """Lines of `excerpt.text[stop:start]` that matter, in their order.

    `max_bytes` and `max_lines` bound all of them together, the newline after each included.
    """
    found = candidates.find(excerpt, stop, start)
    groups = _groups(found.candidates)
    if not any(group.verdict.weight >= vocabulary.MARKED for group in groups):
        groups = _groups(sorted([*found.candidates, *_distant(excerpt, found)], key=attrgetter("begin")))
    ranked = _ranked(groups)
    shown: dict[int, Highlight] = {}
    for place, item in enumerate(_offered(excerpt, ranked, (stop, start), is_all=found.is_all)):
        if len(shown) == max_lines or place > 4 * max_lines:
            break
        if item.line_number not in shown and item.cost <= max_bytes:
            max_bytes -= item.cost
            shown[item.line_number] = item
    return [shown[number] for number in sorted(shown)]


def _distant(excerpt: Excerpt, found: Found) -> list[Candidate]:
    """Far from both ends one looks only where there is nothing near them, for that takes long."""
    if excerpt.is_whole:
        return distant.find(excerpt, found.stop, found.start)
    return [
        *distant.find(excerpt, found.stop, max(found.stop, excerpt.first_stop)),
        *distant.find(excerpt, min(found.start, excerpt.last_start), found.start),
    ]


def _groups(found: Iterable[Candidate]) -> list[_Group]:
    """What is alike together, each under its first line, in the order of those."""
    groups: dict[str, _Group] = {}
    for item in found:
        verdict = vocabulary.verdict(_judged(item))
        if verdict is None and item.is_unlike:
            verdict = vocabulary.LIKE_NO_OTHER
        if verdict is None:
            continue
        key = f"{verdict.rule} {form(item.line)}"
        known = groups.get(key)
        if known is None:
            groups[key] = _Group(verdict, item, item.last_number, item.lines)
        else:
            last = max(known.last_number, item.last_number)
            groups[key] = known._replace(last_number=last, lines=known.lines + item.lines)
    return list(groups.values())


def _judged(item: Candidate) -> str:
    """The part of a line that decides how much it matters: the beginning, or that around the word."""
    begin = 0 if item.place < _LONGEST else item.place - _BEFORE
    return item.line[begin : begin + 2 * _LONGEST]


def _ranked(groups: list[_Group]) -> list[_Group]:
    """The most important first: by weight, less where there are many alike, or many of the same kind."""
    least = vocabulary.least_shown(max((group.verdict.weight for group in groups), default=0))
    order: Counter[int] = Counter()
    ranked = []
    for group in sorted(_from_both_ends(groups), key=_importance, reverse=True):
        rank = min(order[group.verdict.rule], _MOST_PER_RULE)
        order[group.verdict.rule] += 1
        ranked.append((_importance(group) - _PER_RULE * rank, group))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    groups = [group for _, group in ranked]
    return [group for group in groups if group.verdict.weight >= least] + [
        group for group in groups if group.verdict.weight < least
    ][:_LESSER]


def _importance(group: _Group) -> float:
    return group.verdict.weight - _commonness(group.lines)


def _commonness(count: int) -> int:
    return 0 if count < _RARE else 1 if count < _LEAST_COMMON else 2


def _from_both_ends(groups: list[_Group]) -> Iterator[_Group]:
    """First, last, second, last but one, and so on."""
    half = (len(groups) + 1) // 2
    pairs = zip(groups[:half], [*reversed(groups[half:]), None], strict=False)
    return (group for group in chain.from_iterable(pairs) if group is not None)


def _offered(
    excerpt: Excerpt, ranked: list[_Group], within: tuple[int, int], *, is_all: bool
) -> Iterator[Highlight]:
    """What to show, in the order of importance; lines around the most important ones after the next few."""
    head, rest = ranked[: 2 * _SURROUNDED], ranked[2 * _SURROUNDED :]
    for group in head:
        yield _highlight(group, is_all=is_all)
    for group in head[:_SURROUNDED]:
        if group.verdict.weight >= vocabulary.SAID and group.lines == 1:
            yield from _around(excerpt, group.first, within)
    for group in rest:
        yield _highlight(group, is_all=is_all)


def _highlight(group: _Group, *, is_all: bool) -> Highlight:
    item, more = group.first, group.lines - 1
    text = f"line {item.number:,}: {_shown(item.line, item.place)}"
    if more:
        least = "" if is_all else "at least "
        text += f" (and {least}{measure.counted(more, 'more line')} like it, to line {group.last_number:,})"
    return Highlight(item.number, item.begin, item.end, text)


def _around(excerpt: Excerpt, item: Candidate, within: tuple[int, int]) -> Iterator[Highlight]:
    """The lines that belong to `item`: deeper ones after and before it, and those that point at a place."""
    text, (floor, ceiling) = excerpt.text, within
    depth = _depth(item.line)
    begin, number = item.end, item.number
    for _ in range(_AROUND):
        end = text.find("\n", begin, min(ceiling, begin + 4 * _LONGEST)) + 1
        line = text[begin:end]
        number += 1
        if not end or not line.strip() or _depth(line) < max(depth, 1):
            break
        yield Highlight(number, begin, end, f"line {number:,}: {_shown(line, 0)}")
        begin = end
    end, number = item.begin, item.number
    for _ in range(_AROUND):
        begin = text.rfind("\n", max(floor, end - 4 * _LONGEST), max(floor, end - 1)) + 1
        line = text[begin:end]
        number -= 1
        if not begin or begin < floor or not line.strip() or _depth(line) <= depth:
            break
        yield Highlight(number, begin, end, f"line {number:,}: {_shown(line, 0)}")
        end = begin


def _depth(line: str) -> int:
    """How far a line is indented; marks of test runners and compilers at its beginning count as blanks."""
    return len(line) - len(line.lstrip(" \t|>E"))


def _shown(line: str, place: int) -> str:
    """What surrounds `place`, on one line, safe to show."""
    line = line.rstrip()
    if len(line) <= _LONGEST:
        return clean(line).strip()
    begin = cut_after(line, max(0, min(place - _BEFORE, len(line) - _LONGEST)))
    end = cut_before(line, begin + _LONGEST)
    return f"{'…' * (begin > 0)}{clean(line[begin:end]).strip()}{'…' * (end < len(line))}"
