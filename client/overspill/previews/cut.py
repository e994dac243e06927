"""Cut a text to limits: keep its head, its tail or both, and count exactly what is left out.

Pure and deterministic. Lines are capped first, then characters, bytes and tokens. No cut breaks a character
that a reader sees as one.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.chunks import Extent
from overspill.text import measure, token_estimate
from overspill.text.limits import UNLIMITED, Limits, exceeds, left_beside, scaled
from overspill.text.sanitize import WINDOW, cut_after, cut_before, longest_fitting

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.excerpt import Excerpt

    View = Callable[[str], str]


class Strategy(NamedTuple):
    """A way to cut an output. Its beginning gets the share `head` of the room, its end gets the rest.

    A `head` of None means a preview, which also searches for the lines that matter in between. `share` is the
    part of the limits that is used at most. A cut moves to a line end if that loses no more than the share
    `spare` of what is kept.
    """

    name: str
    head: float | None
    share: float = 1.0
    spare: float = 0.0


HEAD = Strategy("head", 1.0)
TAIL = Strategy("tail", 0.0)
ENDS = Strategy("ends", 0.5)
PREVIEW = Strategy("preview", None)
STRATEGIES: Final = MappingProxyType({"PREVIEW": PREVIEW, "HEAD": HEAD, "TAIL": TAIL, "ENDS": ENDS})
"""The strategies by the names that settings use."""


def one_end(strategy: Strategy) -> Strategy:
    """Return a strategy that keeps one end only, for a cut with no mark between head and tail."""
    return strategy if strategy.head == 0 else strategy._replace(head=1.0)


class Cut(NamedTuple):
    """The part that is kept, and the bytes and lines that are not. A line that is cut counts as omitted."""

    head: str
    tail: str
    omitted: Extent


def cut(found: Excerpt, limits: Limits, strategy: Strategy, view: View | None = None) -> Cut:
    """Return what `strategy` keeps of an excerpt within `limits`.

    With a `view`, the limits apply to what `view` makes of the kept text, as `sanitize` does.
    """
    share = 1.0 if strategy.head is None else strategy.head
    text = found.text
    stop = _head(text, found.first_stop, scaled(limits, share, math.ceil), strategy.spare, view)
    head = text[:stop]
    left = left_beside(limits, head if view is None else view(head)) if share < 1 else Limits(0, 0)
    start = _tail(text, max(stop, found.last_start), left, strategy.spare, view)
    return Cut(head, text[start:], _omitted(found, head, text[start:], start))


def _omitted(found: Excerpt, head: str, tail: str, start: int) -> Extent:
    size = found.whole.size - measure.size(head) - measure.size(tail)
    if size <= 0:
        return Extent(0, 0)
    is_line_end = start > found.last_start and found.text[start - 1] == "\n"
    return Extent(size, found.newlines_between(len(head), start) + (not is_line_end))


def _head(text: str, end: int, limits: Limits, spare: float, view: View | None) -> int:
    """Return where the longest prefix of `text[:end]` within `limits` stops."""
    window = text[: min(end, _window(limits, view))]
    if _is_estimated(limits, view):
        window = window[: token_estimate.prefix(window, limits.max_tokens or 0)]
    longest, fits = _line_stop(window, limits.max_lines), _fits(limits, view)
    stop = (
        longest if fits(window[:longest]) else longest_fitting(longest, lambda length: fits(window[:length]))
    )
    if limits.max_tokens is not None and limits.counter is not None:
        stop = limits.counter.prefix(window[:stop], limits.max_tokens)
    if stop < end:
        stop = text.rfind("\n", int(stop * (1 - spare)), stop) + 1 or cut_before(text, stop)
    while stop and not fits(text[:stop]):
        stop = cut_before(text, stop - 1)
    return stop


def _tail(text: str, floor: int, limits: Limits, spare: float, view: View | None) -> int:
    """Return where the longest suffix of `text[floor:]` within `limits` starts."""
    window = text[max(floor, len(text) - _window(limits, view)) :]
    if _is_estimated(limits, view):
        window = window[len(window) - token_estimate.suffix(window, limits.max_tokens or 0) :]
    size, fits = len(window), _fits(limits, view)
    longest = size - _line_start(window, limits.max_lines)
    length = (
        longest
        if fits(window[size - longest :])
        else longest_fitting(longest, lambda n: fits(window[size - n :]))
    )
    if limits.max_tokens is not None and limits.counter is not None:
        length = limits.counter.suffix(window[size - length :], limits.max_tokens)
    start = len(text) - length
    if start > floor:
        start = text.find("\n", start, start + int(length * spare)) + 1 or cut_after(text, start)
    while start < len(text) and not fits(text[start:]):
        start = cut_after(text, start + 1)
    return start


def _is_estimated(limits: Limits, view: View | None) -> bool:
    """Return whether the tokens of the text itself are estimated: the estimate then gives the cut at once."""
    return view is None and limits.max_tokens is not None and limits.counter is None


def _window(limits: Limits, view: View | None) -> int:
    """Return how many characters may be kept at most."""
    reach = limits.max_bytes if limits.max_chars is None else min(limits.max_bytes, limits.max_chars)
    return reach if view is None else reach * WINDOW


def _fits(limits: Limits, view: View | None) -> Callable[[str], bool]:
    """Return a test whether a part fits in bytes, characters and estimated tokens; not in lines."""
    by_size = limits if limits.counter is None else limits._replace(max_tokens=None)
    plain = by_size._replace(max_lines=UNLIMITED)
    return lambda part: not exceeds(part if view is None else view(part), plain)


def _line_stop(text: str, max_lines: int) -> int:
    """Return where the first `max_lines` lines end."""
    if max_lines >= len(text):
        return len(text)
    at = 0
    for _ in range(max_lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _line_start(text: str, max_lines: int) -> int:
    """Return where the last `max_lines` lines begin."""
    if max_lines >= len(text):
        return 0
    at = len(text)
    for _ in range(max_lines):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1
        if not at:
            return 0
    return at
