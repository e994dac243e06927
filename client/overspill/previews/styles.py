"""The notice styles: our own notice, or the exact texts of other designs over the same facts.

See `filling` for the styles that fill the limits with the output itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from overspill.previews import cut, notice, notice_forms, notice_words
from overspill.previews.case import Case, Style
from overspill.previews.cut import HEAD
from overspill.previews.filling import CAPPED, CLAMPED, COUNTED, PARTIAL
from overspill.previews.notice_marks import remember
from overspill.text import measure, quantities
from overspill.text.limits import UNLIMITED, exceeds, left_beside, scaled
from overspill.text.lookalikes import defuse
from overspill.text.reasons import for_model
from overspill.text.sanitize import sanitize
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.previews.notice_facts import Facts, Notice, StoreResult
    from overspill.reading.chunks import Extent

__all__ = [
    "CAPPED",
    "CLAMPED",
    "COUNTED",
    "MARKED",
    "PARTIAL",
    "PERSISTED",
    "STYLES",
    "TERSE",
    "Case",
    "Style",
]

_KIB: Final = 1024
_SMALL_PREVIEW: Final = 256
"""Around a smaller preview the notice is terse. Otherwise it would be mostly words."""
_PREVIEW_SHARES: Final = (1.0, 0.5, 0.25, 0.1, 0.0)
"""Shares of the preview that are tried in turn until the notice is short enough."""
_QUOTING_ATTEMPTS: Final = 3
_LINE_SPARE: Final = 0.5
"""A preview ends at a line end if that costs no more than this part of it."""


@dataclass(frozen=True, slots=True)
class Marked:
    """Our own notice: what happened and what to do first, then a preview between marks.

    If it is too long for the output, it is terse and shows less. It is also terse with `is_terse`, and around
    a small preview.
    """

    name: str = "overspill"
    is_terse: bool = False
    fills: bool = False

    def notice(self, case: Case) -> Notice:
        """Return a notice with the marks around it, a terse one if there is little room."""
        is_terse = self.is_terse or case.shown.max_bytes < _SMALL_PREVIEW
        shares = _PREVIEW_SHARES[-1:] if case.facts.is_known else _PREVIEW_SHARES
        notice = self._made(case, shares[0], is_terse=is_terse)
        if case.fits(notice):
            return notice
        for share in shares:
            notice = self._made(case, share, is_terse=True)
            if case.fits(notice):
                break
        return notice

    def _made(self, case: Case, share: float, *, is_terse: bool) -> Notice:
        """Return the notice with this share of its preview."""
        shown = case.shown._replace(max_bytes=int(case.shown.max_bytes * share))
        preview = self._defused(replace(case, shown=shown)) if share else ""
        return notice.make_notice(replace(case.facts, preview=preview), case.stored, is_terse=is_terse)

    def _defused(self, case: Case) -> str:
        """Return the preview with what reads like a notice quoted; a shorter one if that takes its room."""
        size = case.shown.max_bytes
        for _ in range(_QUOTING_ATTEMPTS):
            preview = self._preview(case)
            safe = defuse(preview)
            if measure.size(safe) <= size:
                return safe
            quotes = measure.size(safe) - measure.size(preview)
            case = replace(case, shown=case.shown._replace(max_bytes=max(0, size - quotes)))
        return ""

    def _preview(self, case: Case) -> str:
        if case.strategy.head is None:
            has_failed = notice_words.status_words(case.facts.status).startswith("failed")
            return case.preview(has_failed=has_failed)
        found = case.excerpt(case.shown)
        if found is None:
            return case.description()
        room = left_beside(case.shown, f"\n{_gap(case.extent)}", lines=1)
        strategy = case.strategy._replace(spare=max(case.strategy.spare, _LINE_SPARE))
        shown = cut.cut(found, scaled(room, strategy.share), strategy, sanitize)
        between = "" if not shown.head or shown.head.endswith("\n") else "\n"
        text = f"{sanitize(shown.head)}{between}{_gap(shown.omitted)}{sanitize(shown.tail)}"
        return "" if exceeds(text, case.shown) else text


def _gap(omitted: Extent) -> str:
    if not omitted.size:
        return ""
    lines, size = quantities.plural(omitted.lines, "line"), quantities.plural(omitted.size, "byte")
    return f"… [{lines}, {size} not shown] …\n"


@dataclass(frozen=True, slots=True)
class Persisted:
    """Another design: what happened, the size, where the full output is, how to read more, its beginning."""

    name: str = "persisted"
    fills: bool = False

    def notice(self, case: Case) -> Notice:
        """Return a notice that names the file, with the first bytes of the output."""
        facts, stored = case.facts, case.stored
        found = case.excerpt(case.shown)
        head = "" if found is None else defuse(sanitize(cut.cut(found, case.shown, HEAD, sanitize).head))
        shown = case.description() if found is None else head
        size = case.shown.max_bytes if case.shown.max_lines == UNLIMITED else measure.size(head)
        head = "\n\n".join(self._head(facts, stored))
        text = f"{head}\n\nPreview (first {size} bytes):\n{shown}\n..."
        closing = notice_forms.closing(facts, stored, says_how=False)
        text = f"{text}\n{closing}" if closing else text
        if not closing:
            remember(text)
        return replace(case.showing(shown), head=f"{head}\n{closing}".strip(), text=text)

    def _head(self, facts: Facts, stored: StoreResult) -> list[str]:
        what = f"Output too large ({_kilobytes(facts.size)})."
        if stored.outcome is Outcome.TRUNCATED:
            return [f"{what} Failed to save full output: {for_model(stored.reason)}"]
        if stored.path:
            how = "Use read_file to view specific sections with offset and limit parameters."
            return [f"{what} {_saved(facts)}: {notice_words.shown_path(stored.path)}", how]
        return [
            f"{what} {_saved(facts)}: {facts.id}",
            f"Use {notice_words.how_to_read(facts, stored, with_modes=True)}",
        ]


def _saved(facts: Facts) -> str:
    """Begin the sentence that says where the output is: all of it, or only its beginning."""
    missing = for_model(facts.missing)
    return f"Only its beginning ({missing}) saved to" if facts.missing else "Full output saved to"


def _kilobytes(size: int) -> str:
    return f"{size / _KIB / _KIB:.1f} MB" if size >= _KIB * _KIB else f"{size / _KIB:.1f} KB"


MARKED: Final[Style] = Marked()
TERSE: Final[Style] = Marked("terse", is_terse=True)
PERSISTED: Final[Style] = Persisted()
STYLES: Final = MappingProxyType(
    {
        "MARKED": MARKED,
        "TERSE": TERSE,
        "PERSISTED": PERSISTED,
        "CLAMPED": CLAMPED,
        "PARTIAL": PARTIAL,
        "COUNTED": COUNTED,
        "CAPPED": CAPPED,
    }
)
"""The styles by the names that settings use."""
