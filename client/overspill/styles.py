"""The forms that a stand-in takes: our own notice, or the exact texts of other designs over the same facts.

A form that fills the limits keeps as much of the output as they allow, its own words and what else stays of
the output included, so that what it made is never cut again. Where the whole is stored, a last line with the
handle says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from overspill import cut, measure, notice
from overspill.cut import HEAD, clip_marker
from overspill.measure import UNLIMITED, Extent, Limits
from overspill.notice import Facts, Kept, Notice, defused
from overspill.plain import clean
from overspill.previews import excerpt, preview
from overspill.tokens import estimated
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.body import Body
    from overspill.cut import Cut, Strategy
    from overspill.previews.excerpt import Excerpt

_KIB: Final = 1024
_LONG_CHARACTER: Final = 64
"""Bytes that a cut within limits in bytes may leave free."""
_SHARES: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1)
"""Of the limits, what is tried in turn until all is within them: escapes make a text longer in a dict."""
_BESIDE: Final = 0.25
"""Of the limits, what placeholders and the like may take up beside the output's text."""
_ANY: Final = "x"
"""In place of a text that is not yet known."""
_SMALL_PREVIEW: Final = 256
"""Bytes of a preview below which the notice around it is terse: else it would be mostly words."""
_LESS: Final = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Shares of its preview that a notice is tried with in turn."""
_LINE_SPARE: Final = 0.5
"""A preview shows whole lines where that costs no more than this part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One output that is replaced: what is known of it, where it went, and how much of it may be shown.

    `extent` is that of `body`. `limits` are those it exceeded, `room` is what a stand-in that fills them may
    have, and `shown` are the limits of a preview. `read` gives the text that a model gets with a notice in
    the output's place, and `fits` says whether that is short enough to stand there.
    """

    facts: Facts
    kept: Kept
    body: Body
    extent: Extent
    content_type: str
    limits: Limits
    room: Limits
    shown: Limits
    strategy: Strategy
    read: Callable[[Notice], str]
    fits: Callable[[Notice], bool]

    def excerpt(self, limits: Limits) -> Excerpt | None:
        """The output as far as something within `limits` can be kept of it; None where it is no text."""
        return excerpt.of_body(self.body, self.extent, min(limits.max_bytes, cut.CEILING) * 2)

    def description(self) -> str:
        return preview.describe(self.body, self.content_type)


class Style(Protocol):
    """How the stand-in of an output reads."""

    @property
    def name(self) -> str: ...

    @property
    def fills(self) -> bool:
        """Whether it shows as much of an output as its limits allow, not a preview."""

    def notice(self, case: Case) -> Notice:
        """Raises `OSError` where an output lies in a file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Marked:
    """Our own: what happened and what to do first, then a preview between marks.

    Where that is too long for what it stands for, it is terse and shows less. It `is_terse` anyway where it
    is told so, or where its preview is small.
    """

    name: str = "overspill"
    is_terse: bool = False
    fills: bool = False

    def notice(self, case: Case) -> Notice:
        is_terse = self.is_terse or case.shown.max_bytes < _SMALL_PREVIEW
        made = self._made(case, 1.0, is_terse=is_terse)
        if case.fits(made):
            return made
        for share in _LESS:
            made = self._made(case, share, is_terse=True)
            if case.fits(made):
                break
        return made

    def _made(self, case: Case, share: float, *, is_terse: bool) -> Notice:
        """Return the notice with this share of its preview."""
        shown = case.shown._replace(max_bytes=int(case.shown.max_bytes * share))
        preview = self._preview(replace(case, shown=shown)) if share else ""
        return notice.of(replace(case.facts, preview=preview), case.kept, is_terse=is_terse)

    def _preview(self, case: Case) -> str:
        size, lines = case.shown.max_bytes, case.shown.max_lines
        if case.strategy.head is None:
            return preview.of_body(case.body, case.content_type, size, lines, case.extent).text
        found = case.excerpt(case.shown)
        if found is None:
            return case.description()
        room = cut.less(case.shown, f"\n{_gap(case.extent)}", lines=1)
        strategy = case.strategy._replace(spare=max(case.strategy.spare, _LINE_SPARE))
        kept = cut.cut(found, cut.scaled(room, strategy.share), strategy, clean)
        between = "" if not kept.head or kept.head.endswith("\n") else "\n"
        text = f"{clean(kept.head)}{between}{_gap(kept.omitted)}{clean(kept.tail)}"
        return "" if measure.exceeds(text, case.shown) else text


def _gap(omitted: Extent) -> str:
    if not omitted.size:
        return ""
    lines, size = measure.counted(omitted.lines, "line"), measure.counted(omitted.size, "byte")
    return f"… [{lines}, {size} not shown] …\n"


@dataclass(frozen=True, slots=True)
class Persisted:
    """What happened and the size, where the full output is, how to read more, its beginning, an end mark."""

    name: str = "persisted"
    fills: bool = False

    def notice(self, case: Case) -> Notice:
        facts, kept = case.facts, case.kept
        found = case.excerpt(case.shown)
        head = "" if found is None else defused(clean(cut.cut(found, case.shown, HEAD, clean).head))
        shown = case.description() if found is None else head
        size = case.shown.max_bytes if case.shown.max_lines == UNLIMITED else measure.size(head)
        head = "\n\n".join(self._head(facts, kept))
        text = f"{head}\n\nPreview (first {size} bytes):\n{shown}\n..."
        closing = notice.closing(facts, kept, says_how=False)
        text = f"{text}\n{closing}" if closing else text
        return replace(_with_preview(case, shown), head=f"{head}\n{closing}".strip(), text=text)

    def _head(self, facts: Facts, kept: Kept) -> list[str]:
        what = f"Output too large ({_kilobytes(facts.size)})."
        if kept.outcome is Outcome.TRUNCATED:
            return [f"{what} Failed to save full output: {notice.for_model(kept.reason)}"]
        if kept.path:
            how = "Use read_file to view specific sections with offset and limit parameters."
            return [f"{what} Full output saved to: {notice.shown_path(kept.path)}", how]
        return [
            f"{what} Full output saved to: {facts.id}",
            f"Use {notice.how_to_read(facts, kept, with_modes=True)}",
        ]


def _kilobytes(size: int) -> str:
    return f"{size / _KIB / _KIB:.1f} MB" if size >= _KIB * _KIB else f"{size / _KIB:.1f} KB"


@dataclass(frozen=True, slots=True)
class Filling:
    """The output itself, cut to the limits, with `mark` where it was cut.

    What in the output looks like `own`, the beginning of a mark, is defused.
    """

    name: str
    mark: Callable[[Case, Extent, Limits], str]
    own: re.Pattern[str]
    fills: bool = True

    def notice(self, case: Case) -> Notice:
        found, frame = case.excerpt(case.room), _frame(case)
        preview = self._filled(case, found, "", frame)
        ended = (self._filled(case, found, line, frame) for line in _closings(case))
        is_alone = frame.notice.is_alone
        return replace(
            _with_preview(case, preview), text=next(filter(None, ended), preview), is_alone=is_alone
        )

    def _filled(self, case: Case, found: Excerpt | None, closing: str, frame: _Frame) -> str:
        """As much of the output as fits into the frame; empty where nothing does."""
        for share in _SHARES:
            made = self._made(case, found, cut.scaled(frame.room, share), closing)
            if not measure.exceeds(case.read(frame.around(made)), case.room):
                return made
        return ""

    def _made(self, case: Case, found: Excerpt | None, limits: Limits, closing: str) -> str:
        """The parts that are kept around the mark; where there is no room for the mark, one part alone."""
        share, strategy = cut.scaled(limits, case.strategy.share), case.strategy
        mark = self.mark(case, case.extent, share)
        room = _beside(limits, mark, closing)
        if 0 in room[:4]:
            mark, room, strategy = "", _beside(limits, "", closing), cut.one_end(strategy)
        room = cut.least(room, share)
        kept = self._cut(case, found, room, strategy)
        head, tail = self._defused(kept.head), self._defused(kept.tail)
        if mark:
            is_full = measure.size(kept.head) > room.max_bytes - _LONG_CHARACTER
            mark = self.mark(case, kept.omitted, share._replace(max_tokens=None) if is_full else share)
        if mark.startswith("\n\n"):
            head = head.removesuffix("\n").removesuffix("\r")
        text = f"{head}{mark}{tail}"
        newline = "" if not text or text.endswith("\n") or not closing else "\n"
        return f"{text}{newline}{closing}"

    def _cut(self, case: Case, found: Excerpt | None, room: Limits, strategy: Strategy) -> Cut:
        if found is not None:
            return cut.cut(found, room, strategy)
        description = case.description()
        return cut.Cut("" if measure.exceeds(description, room) else description, "", case.extent)

    def _defused(self, text: str) -> str:
        return self.own.sub("(", defused(text))


def _closings(case: Case) -> list[str]:
    """Return last lines that say where the whole is, the fullest first; all but the last leave room."""
    full, *shorter = [notice.closing(case.facts, case.kept), *notice.short_closings(case.facts, case.kept)]
    if not full:
        return []
    half = cut.scaled(case.room, 0.5)
    return [*(line for line in (full, *shorter[:-1]) if not measure.exceeds(line, half)), shorter[-1]]


def _beside(limits: Limits, mark: str, closing: str) -> Limits:
    """What is left of `limits` beside a mark and a last line."""
    ending = f"\n{closing}" if closing else ""
    return cut.less(limits, f"{mark}{ending}", lines=measure.newlines(mark) + bool(closing))


class _Frame(NamedTuple):
    """A notice that any text may be put into, and the room for that text."""

    notice: Notice
    room: Limits

    def around(self, text: str) -> Notice:
        return replace(self.notice, preview=text, text=text)


def _frame(case: Case) -> _Frame:
    """Without placeholders where they, and what else stays beside the text, would take up too much."""
    made = replace(_with_preview(case, _ANY), text=_ANY)
    beside = _beside_any(case, made)
    if measure.exceeds(beside, cut.scaled(case.room, _BESIDE)):
        made = replace(made, is_alone=True)
        beside = _beside_any(case, made)
    return _Frame(made, cut.less(case.room, beside, lines=measure.newlines(beside)))


def _beside_any(case: Case, made: Notice) -> str:
    """What a model gets beside the text: all but as many characters as that has, whichever they are."""
    return case.read(made)[len(_ANY) :]


def _with_preview(case: Case, preview: str) -> Notice:
    return notice.of(replace(case.facts, preview=preview), case.kept)


# --- the marks of other designs -------------------------------------------------------------------


def _clamped(case: Case, _omitted: Extent, _share: Limits) -> str:
    return (
        f"\n\n[tool output truncated: exceeded {_limits(case.limits)}; "
        "request smaller chunks (offset/limit) or specific sections]"
    )


def _limits(limits: Limits) -> str:
    """`50KB or 2000 lines`; what follows from the characters is not said."""
    size = limits.max_bytes
    if limits.max_chars is not None and size >= limits.max_chars * measure.MAX_BYTES_PER_CHARACTER:
        size = UNLIMITED
    short = f"{size // _KIB}KB" if size and size % _KIB == 0 else f"{size} bytes"
    named = {
        short: size,
        f"{limits.max_lines} lines": limits.max_lines,
        f"{limits.max_chars} characters": limits.max_chars,
        f"{limits.max_tokens} tokens": limits.max_tokens,
    }
    return " or ".join(name for name, limit in named.items() if limit not in {None, UNLIMITED})


def _partial(_case: Case, _omitted: Extent, _share: Limits) -> str:
    return (
        "\n\n⚠️ [Content truncated — original was too large for the model's context window. "
        "The content above is a partial view. If you need more, request specific sections or use "
        "offset/limit parameters to read smaller chunks.]"
    )


def _counted(case: Case, _omitted: Extent, share: Limits) -> str:
    tokens = case.facts.tokens or estimated(case.facts.size)
    number = f"{'' if tokens.is_exact else '~'}{tokens.tokens}"
    limit, shown = f"limit of {case.limits.max_tokens}", f"first {share.max_tokens} tokens"
    if share.max_tokens is None:
        limit, shown = f"limits of {_limits(case.limits)}", "the beginning"
    return (
        f"\n\n⚠️ [Output truncated: {number} tokens exceeds {limit}. "
        f"Showing {shown}. Use pagination or filters to get specific data.]"
    )


def _capped(_case: Case, omitted: Extent, _share: Limits) -> str:
    return clip_marker(omitted.size)


MARKED: Final[Style] = Marked()
TERSE: Final[Style] = Marked("terse", is_terse=True)
PERSISTED: Final[Style] = Persisted()
CLAMPED: Final[Style] = Filling("clamped", _clamped, re.compile(r"\[(?=tool output truncated:)"))
PARTIAL: Final[Style] = Filling("partial", _partial, re.compile(r"\[(?=Content truncated —)"))
COUNTED: Final[Style] = Filling("counted", _counted, re.compile(r"\[(?=Output truncated:)"))
CAPPED: Final[Style] = Filling(
    "capped", _capped, re.compile(r"\[(?=[0-9]+ bytes truncated; head \+ tail kept\])")
)
