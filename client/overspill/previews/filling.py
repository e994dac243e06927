"""Notice styles that fill the limits with the output itself, around the exact words of other designs.

They keep as much of the output as the limits allow. Their own words count too, and so do other parts of the
output that stay. So the result is never cut again. If the whole is stored, a last line says so and gives the
handle. The marks of the designs stand where the middle or the end of the output is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.previews import cut, notice_forms
from overspill.previews.notice_marks import marked
from overspill.text import measure
from overspill.text.limits import UNLIMITED, Limits, exceeds, left_beside, scaled, stricter
from overspill.text.lookalikes import defuse
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.tokens import estimate_from_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.case import Case
    from overspill.previews.cut import Cut, Strategy
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.notice_facts import Notice
    from overspill.reading.chunks import Extent

_KIB: Final = 1024
_LONG_CHARACTER: Final = 64
"""Bytes of room that a cut may leave unused, since it breaks no character."""
_SHARES: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1)
"""Shares of the limits that are tried in turn until all fits: escapes make a text longer in a dict."""
_PLACEHOLDER_SHARE: Final = 0.25
"""The share of the limits that placeholders may take up beside the output's text."""
_ANY_TEXT: Final = "x"
"""Takes the place of a text that is not known yet."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Shows the output itself, cut to the limits, with `mark` where it was cut.

    `own` matches the beginning of a mark. Anything in the output that looks like it is defused.
    """

    name: str
    mark: Callable[[Case, Extent, Limits], str]
    own: re.Pattern[str]
    fills: bool = True

    def notice(self, case: Case) -> Notice:
        """Return a notice that shows as much of the output as the limits allow.

        Raises `OSError` if the output is in a file that cannot be read.
        """
        excerpt, form = case.excerpt(case.room), _notice_form(case)
        preview = self._fill(case, excerpt, "", form)
        ended = (self._fill(case, excerpt, line, form) for line in _closings(case))
        is_alone = form.notice.is_alone
        return replace(case.showing(preview), text=next(filter(None, ended), preview), is_alone=is_alone)

    def _fill(self, case: Case, excerpt: Excerpt | None, closing: str, form: _NoticeForm) -> str:
        """Return as much of the output as fits into the notice; empty if nothing does."""
        for share in _SHARES:
            text = self._marked_cut(case, excerpt, scaled(form.room, share), closing)
            if not exceeds(case.read(form.with_text(text)), case.room):
                return text
        return ""

    def _marked_cut(self, case: Case, excerpt: Excerpt | None, limits: Limits, closing: str) -> str:
        """Return what is kept, around the mark. If there is no room for the mark, keep one end alone."""
        share, strategy = scaled(limits, case.strategy.share), case.strategy
        mark = self.mark(case, case.extent, share)
        room = _room_beside(limits, mark, closing)
        if 0 in room[:4]:
            mark, room, strategy = "", _room_beside(limits, "", closing), cut.one_end(strategy)
        room = stricter(room, share)
        shown = self._cut(case, excerpt, room, strategy)
        head, tail = self._defused(shown.head), self._defused(shown.tail)
        if mark:
            is_full = measure.size(shown.head) > room.max_bytes - _LONG_CHARACTER
            mark = self.mark(case, shown.omitted, share._replace(max_tokens=None) if is_full else share)
        if mark.startswith("\n\n"):
            head = head.removesuffix("\n").removesuffix("\r")
        text = f"{head}{mark}{tail}"
        newline = "" if not text or text.endswith("\n") or not closing else "\n"
        return f"{text}{newline}{closing}"

    def _cut(self, case: Case, excerpt: Excerpt | None, room: Limits, strategy: Strategy) -> Cut:
        if excerpt is not None:
            return cut.cut(excerpt, room, strategy)
        description = case.description()
        return cut.Cut("" if exceeds(description, room) else description, "", case.extent)

    def _defused(self, text: str) -> str:
        return self.own.sub("(", defuse(text))


def _closings(case: Case) -> list[str]:
    """Return last lines that say where the whole is, the longest first.

    All but the last leave room for text.
    """
    lines, half = notice_forms.closings(case.facts, case.stored), scaled(case.room, 0.5)
    return [*(line for line in lines[:-1] if not exceeds(line, half)), *lines[-1:]]


def _room_beside(limits: Limits, mark: str, closing: str) -> Limits:
    """Return what `limits` leave beside a mark and a last line."""
    ending = f"\n{marked(closing)}" if closing else ""
    return left_beside(limits, f"{mark}{ending}", lines=measure.count_newlines(mark) + bool(closing))


class _NoticeForm(NamedTuple):
    """A notice for any text, and the room for that text."""

    notice: Notice
    room: Limits

    def with_text(self, text: str) -> Notice:
        return replace(self.notice, preview=text, text=text)


def _notice_form(case: Case) -> _NoticeForm:
    """Return the notice without its text. Leaves out placeholders if they would take up too much."""
    notice = replace(case.showing(_ANY_TEXT), text=_ANY_TEXT)
    other = _other_text(case, notice)
    if exceeds(other, scaled(case.room, _PLACEHOLDER_SHARE)):
        notice = replace(notice, is_alone=True)
        other = _other_text(case, notice)
    return _NoticeForm(notice, left_beside(case.room, other, lines=measure.count_newlines(other)))


def _other_text(case: Case, notice: Notice) -> str:
    """Return the text that a model gets beside the output's own."""
    return case.read(notice)[len(_ANY_TEXT) :]


def _clamped(case: Case, _omitted: Extent, _share: Limits) -> str:
    return (
        f"\n\n[tool output truncated: exceeded {_limits(case.limits)}; "
        "request smaller chunks (offset/limit) or specific sections]"
    )


def _limits(limits: Limits) -> str:
    """Return words such as `50KB or 2000 lines`, without a byte limit that follows from the characters."""
    size = limits.max_bytes
    if limits.max_chars is not None and size >= limits.max_chars * MAX_BYTES_PER_CHARACTER:
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
    tokens = case.facts.tokens or estimate_from_size(case.facts.size)
    number = f"{'' if tokens.is_exact else '~'}{tokens.tokens}"
    limit, shown = f"limit of {case.limits.max_tokens}", f"first {share.max_tokens} tokens"
    if share.max_tokens is None:
        limit, shown = f"limits of {_limits(case.limits)}", "the beginning"
    return (
        f"\n\n⚠️ [Output truncated: {number} tokens exceeds {limit}. "
        f"Showing {shown}. Use pagination or filters to get specific data.]"
    )


def _capped(_case: Case, omitted: Extent, _share: Limits) -> str:
    return f"\n... [{omitted.size} bytes truncated; head + tail kept] ...\n"


CLAMPED: Final = Filling("clamped", _clamped, re.compile(r"\[(?=tool output truncated:)"))
PARTIAL: Final = Filling("partial", _partial, re.compile(r"\[(?=Content truncated —)"))
COUNTED: Final = Filling("counted", _counted, re.compile(r"\[(?=Output truncated:)"))
CAPPED: Final = Filling("capped", _capped, re.compile(r"\[(?=[0-9]+ bytes truncated; head \+ tail kept\])"))
