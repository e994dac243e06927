"""Forms beside a notice: last lines with the handle, placeholders, a dict; and how to recognise a notice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from overspill.previews import notice
from overspill.text import measure
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.previews.notice import Facts, Kept, Notice

MAX_NOTICE: Final = 64 * 1024
"""A longer text is no notice, whatever marks it wears."""
_ID: Final = "cap_[a-z2-7]{20}"
_NOTICE: Final = re.compile(r"\[overspill(?: NOT STORED)?\] .*\n\[/overspill\]", re.DOTALL)
_PLACEHOLDER: Final = re.compile(
    rf"\[overspill(?: {_ID})?: [0-9,]+ bytes? of text, (?:in the capture|not stored)\]"
)
_CLOSING: Final = re.compile(rf"\[overspill(?:: [^\n]*| {_ID})\]")
_FAILED: Final = re.compile(
    r"Output too large \([0-9.]+ [KM]B\)\. Failed to save full output: .*\n\.\.\.", re.DOTALL
)


def closing(facts: Facts, kept: Kept, *, says_how: bool = True) -> str:
    """Return one line with the handle, for a stand-in in another form; empty if nothing is stored.

    `says_how` to read more, unless the stand-in does.
    """
    if kept.outcome is Outcome.TRUNCATED:
        return ""
    some = "the first" if facts.missing else "all"
    size = f"{some} {measure.plural(facts.size, 'byte')}, {measure.plural(facts.lines, 'line')}"
    how = f" Read more: {notice.how_to_read(facts, kept, with_modes=True)}." if says_how else ""
    kept_where = f"{notice.where(kept)}{notice.until(kept)}{notice.because(kept)}"
    text = f"{size} are stored{kept_where}.{how} {notice.DO_NOT_RERUN}{notice.same(facts)}"
    return f"[overspill: {' '.join(text.split())}]"


def short_closings(facts: Facts, kept: Kept) -> list[str]:
    """Return shorter forms of `closing`, the longest first, for a cut that leaves little room."""
    if kept.outcome is Outcome.TRUNCATED:
        return []
    read = notice.how_to_read(facts, kept)
    return [f"[overspill: {' '.join(read.split())}]", f"[overspill {facts.id}]"]


def placeholder(made: Notice, size: int) -> str:
    """Return what stands in for `size` bytes of further text of an output whose first text is the notice."""
    where = "in the capture" if made.stored else "not stored"
    name = f"overspill {made.id}" if made.id else "overspill"
    return f"[{name}: {measure.plural(size, 'byte')} of text, {where}]"


def as_dict(made: Notice) -> dict[str, Any]:
    """Return the notice as a dict. Its `notice` comes first and has everything but the preview."""
    return {
        "notice": made.head,
        "status": str(made.outcome),
        "capture": made.id or None,
        "total_bytes": made.size,
        "total_lines": made.lines,
        **({"read_more": made.read_more} if made.stored else {}),
        "preview": made.preview,
    }


def is_notice(value: Any) -> bool:
    """Return whether `value` is a notice or a placeholder, which is never spilled again.

    Any tool can print text that looks like one, so only a short text is believed.
    """
    if not isinstance(value, str) or len(value) > MAX_NOTICE:
        return False
    if value.startswith("[overspill") and (_NOTICE.fullmatch(value) or _PLACEHOLDER.fullmatch(value)):
        return True
    if value.endswith("]"):
        return _CLOSING.fullmatch(value, value.rfind("\n") + 1) is not None
    return value.endswith("\n...") and _FAILED.fullmatch(value) is not None
