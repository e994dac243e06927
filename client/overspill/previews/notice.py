"""The text that stands in for an output: a mark, what it is, how to read more, a preview, an end mark.

    [overspill] Output of run_command (call_1, failed: exit 1) too long: 223893 bytes, …
    Read more: inspect_output("cap_…"); modes: … Do not rerun.
    --- preview ---
    …
    [/overspill]

The same facts give the same bytes. The preview is untrusted: anything in it that looks like a mark is
defused. What is stored nowhere has no handle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from overspill.previews.call_status import status_words
from overspill.text import measure
from overspill.text.reasons import defuse, for_model
from overspill.text.sanitize import sanitize
from overspill.text.tokens import TokenCount, estimate_from_size
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

MAX_NOTICE: Final = 64 * 1024
"""A longer text is no notice, whatever marks it wears."""
TOO_LONG: Final = "too long"
"""Why an output is not shown, as the end of a sentence about it."""
_MAX_TOOL: Final = 100
_MAX_CALL_ID: Final = 64
"""A longer id, as one that carries a signature, says nothing to a model."""
_SHORT_REASON: Final = 60
_SHORT_STATUS: Final = 24
"""Characters of a reason and of a status in a terse notice, at most."""
_BEGIN: Final = "[overspill]"
_LOST: Final = "[overspill NOT STORED]"
_END: Final = "[/overspill]"
_PREVIEW: Final = "--- preview ---\n"
_WHOLE: Final = "Stored whole"
_AGAIN: Final = "Do not rerun."
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""As `strftime` writes them only where nobody has set a locale."""
_ID: Final = "cap_[a-z2-7]{20}"
_NOTICE: Final = re.compile(r"\[overspill(?: NOT STORED)?\] .*\n\[/overspill\]", re.DOTALL)
_PLACEHOLDER: Final = re.compile(
    rf"\[overspill(?: {_ID})?: [0-9,]+ bytes? of text, (?:in the capture|not stored)\]"
)
_CLOSING: Final = re.compile(rf"\[overspill(?:: [^\n]*| {_ID})\]")
_FAILED: Final = re.compile(
    r"Output too large \([0-9.]+ [KM]B\)\. Failed to save full output: .*\n\.\.\.", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a spill, and until when.

    `reason` says why the service does not have it, and `is_refused` whether it will not take it by itself
    later; `path` names the file that the agent itself can open.
    """

    outcome: Outcome
    expires: datetime | None = None
    reason: str = ""
    path: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a notice says of an output: sizes in bytes and lines of the whole, a `preview` safe to show.

    `id` is empty of what nobody tries to store. `reader` is the call that reads more, with `{id}` in it, and
    `modes` what else it can do. `tokens` is estimated where it is None; `call_id` and `status` are empty
    where they are not known; `same_as` is the id of an earlier capture of the same content in the same
    session. `missing` says why nobody has more than the beginning of it.
    """

    id: str
    tool: str
    size: int
    lines: int
    preview: str
    reader: str
    modes: str = ""
    why: str = TOO_LONG
    tokens: TokenCount | None = None
    call_id: str = ""
    status: str = ""
    same_as: str | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`head` is the mark and what to do, `preview` the untrusted part; `str()` is the whole.

    `read_more` is the call in `head` that reads the capture. It and `id` are empty where nothing is stored;
    `path` is the file that the agent itself can open, if there is one.
    `text` is the whole where it is anything else than head and preview between marks. One that `is_alone`
    leaves no room beside it: other texts of the output go without a placeholder.
    """

    id: str
    outcome: Outcome
    size: int
    lines: int
    head: str
    read_more: str
    preview: str
    path: str = ""
    text: str | None = None
    is_alone: bool = False

    @property
    def stored(self) -> bool:
        """Whether the whole can be read, wherever it is."""
        return self.outcome is not Outcome.TRUNCATED

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        newline = "" if self.preview.endswith("\n") else "\n"
        shown = f"{_PREVIEW}{self.preview}{newline}" if self.preview else ""
        return f"{self.head}\n{shown}{_END}"


def make_notice(facts: Facts, kept: Kept, *, is_terse: bool = False) -> Notice:
    """Return the notice of an output that went where `kept` says; a terse one for a small preview."""
    if is_terse:
        return _terse(facts, kept)
    if kept.outcome is Outcome.TRUNCATED:
        return truncated(facts, kept.reason)
    how = how_to_read(facts, kept, with_modes=True)
    head = (
        f"{_BEGIN} {_too_long(facts)} {_extent(facts)}{_where(kept)}{_until(kept)}{_because(kept)}.\n"
        f"Read more: {how}. {_AGAIN}{_same(facts)}"
    )
    return _notice(facts, kept.outcome, head, how_to_read(facts, kept), kept.path)


def captured(facts: Facts, expires: datetime) -> Notice:
    """Return the notice of an output that the service has whole until `expires`."""
    return make_notice(facts, Kept(outcome=Outcome.CAPTURED, expires=expires))


def spooled(facts: Facts, expires: datetime | None, reason: str, path: str = "") -> Notice:
    """Return the notice of an output that is whole on this machine, at `path` if its agent can open that.

    `reason` says why the service does not have it; empty where nobody meant it to.
    """
    return make_notice(facts, Kept(outcome=Outcome.SPOOLED, expires=expires, reason=reason, path=path))


def truncated(facts: Facts, reason: str) -> Notice:
    """Return the notice of an output that could not be stored; what the preview leaves out is gone."""
    lost = "What the preview leaves out is lost" if facts.preview else "All of it is lost"
    head = (
        f"{_LOST} {_too_long(facts)} It could NOT be stored: {for_model(reason)}.\n"
        f"{lost}. If you need it, run the tool again with a narrower question (a filter, a range, fewer "
        f"files).{_same(facts)}"
    )
    return _notice(facts, Outcome.TRUNCATED, head, "")


def _terse(facts: Facts, kept: Kept) -> Notice:
    size = f"{measure.plural(facts.size, 'byte')}, {measure.plural(facts.lines, 'line')}"
    end = status_words(facts.status)
    what = f"{size}, {end}" if end and len(end) <= _SHORT_STATUS else size
    if kept.outcome is Outcome.TRUNCATED:
        reason = for_model(kept.reason)
        short = reason if len(reason) <= _SHORT_REASON else f"{reason[: _SHORT_REASON - 1]}…"
        return _notice(facts, kept.outcome, f"{_LOST} {what}: {short}. Ask for less.", "")
    read_more = how_to_read(facts, kept)
    use = read_more if kept.path else f"use {read_more}"
    day = "" if kept.expires is None else f" until {kept.expires.astimezone(UTC):%Y-%m-%d}"
    part = ", only its beginning" if facts.missing else ""
    head = f"{_BEGIN} {what}{part}{day}; do not rerun, {use}"
    return _notice(facts, kept.outcome, head, read_more, kept.path)


def without_middle(made: Notice, gone: int, why: str) -> Notice:
    """Return a notice of `of` for an output that was handed over without `gone` bytes of its middle."""
    said = f"Stored without {measure.plural(gone, 'byte')} of its middle ({for_model(why)})"
    return replace(made, head=made.head.replace(f". {_WHOLE}", f". {said}", 1))


# --- parts of notices ------------------------------------------------------------------------------


def _extent(facts: Facts) -> str:
    return f"Only its beginning is stored ({for_model(facts.missing)})" if facts.missing else _WHOLE


def _where(kept: Kept) -> str:
    if kept.outcome is Outcome.CAPTURED:
        return ""
    if kept.path:
        return f" in the file {shown_path(kept.path)}"
    return " on this machine alone" if kept.is_refused else " on this machine"


def _until(kept: Kept) -> str:
    return "" if kept.expires is None else f" until {_instant(kept.expires)}"


def _because(kept: Kept) -> str:
    """Say why the service does not have it, and whether it will."""
    if kept.outcome is Outcome.CAPTURED or not kept.reason:
        return ""
    reason = for_model(kept.reason)
    if kept.is_refused:
        return f"; it is not in the service ({reason})"
    later = "" if kept.path else "; it waits to be uploaded"
    return f"; the service could not take it ({reason}){later}"


def how_to_read(facts: Facts, kept: Kept, *, with_modes: bool = False) -> str:
    """Return the call that reads more, and what else it can do; of a file, what to do with it."""
    if kept.path:
        return f"read parts of {shown_path(kept.path)} with your file-reading tool, or grep it"
    modes = f"; {facts.modes}" if facts.modes and with_modes else ""
    return facts.reader.replace("{id}", facts.id) + modes


def closing(facts: Facts, kept: Kept, *, says_how: bool = True) -> str:
    """Return one line with the handle, for a stand-in in another form; empty where nothing is stored.

    `says_how` to read more, unless the stand-in does.
    """
    if kept.outcome is Outcome.TRUNCATED:
        return ""
    some = "the first" if facts.missing else "all"
    size = f"{some} {measure.plural(facts.size, 'byte')}, {measure.plural(facts.lines, 'line')}"
    how = f" Read more: {how_to_read(facts, kept, with_modes=True)}." if says_how else ""
    text = f"{size} are stored{_where(kept)}{_until(kept)}{_because(kept)}.{how} {_AGAIN}{_same(facts)}"
    return f"[overspill: {' '.join(text.split())}]"


def short_closings(facts: Facts, kept: Kept) -> list[str]:
    """Return shorter forms of `closing`, the longest first, for where it has no room."""
    if kept.outcome is Outcome.TRUNCATED:
        return []
    read = how_to_read(facts, kept)
    return [f"[overspill: {' '.join(read.split())}]", f"[overspill {facts.id}]"]


def _same(facts: Facts) -> str:
    if facts.same_as is None:
        return ""
    return f" It is byte for byte an earlier output of this session, whose handle is {facts.same_as}."


def _notice(facts: Facts, outcome: Outcome, head: str, read_more: str, path: str = "") -> Notice:
    return Notice(
        id="" if outcome is Outcome.TRUNCATED else facts.id,
        outcome=outcome,
        size=facts.size,
        lines=facts.lines,
        head=head,
        read_more=read_more,
        preview=defuse(facts.preview),
        path=path,
    )


def _too_long(facts: Facts) -> str:
    least = "at least " if facts.missing else ""
    return f"Output of {_tool(facts)}{_call(facts)} {facts.why}: {least}{_sizes(facts)}."


def _sizes(facts: Facts) -> str:
    """Say how large the output is, without commas in numbers: each of them would cost a token."""
    size, lines = measure.plural(facts.size, "byte"), measure.plural(facts.lines, "line")
    tokens = facts.tokens or estimate_from_size(facts.size)
    return ", ".join(text.replace(",", "") for text in (size, lines, str(tokens)))


def _tool(facts: Facts) -> str:
    return _one_line(facts.tool[:_MAX_TOOL]) or "the tool"


def _call(facts: Facts) -> str:
    """Say which call it was and how that ended, as far as it is known."""
    call_id = facts.call_id if len(facts.call_id) <= _MAX_CALL_ID else ""
    known = [text for text in (_one_line(call_id), status_words(facts.status)) if text]
    return f" ({', '.join(known)})" if known else ""


def shown_path(path: str) -> str:
    """Return a path on one line, safe to show."""
    return defuse(" ".join(sanitize(path).split("\n")))


def _one_line(text: str) -> str:
    return defuse(" ".join(sanitize(text).split()))


def _instant(when: datetime) -> str:
    """Return the instant in whole minutes, rounded down: nothing is promised for longer than it is kept.

    It has no year: captures are kept for days, and a year costs four tokens.
    """
    at = when.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at:%H:%M} UTC"


# --- further forms ---------------------------------------------------------------------------------


def placeholder(notice: Notice, size: int) -> str:
    """Return what stands in for `size` bytes of further text of an output whose first text is the notice."""
    where = "in the capture" if notice.stored else "not stored"
    name = f"overspill {notice.id}" if notice.id else "overspill"
    return f"[{name}: {measure.plural(size, 'byte')} of text, {where}]"


def as_dict(notice: Notice) -> dict[str, Any]:
    """Return the notice as a dict; its `notice` comes first and is complete but for the preview."""
    return {
        "notice": notice.head,
        "status": str(notice.outcome),
        "capture": notice.id or None,
        "total_bytes": notice.size,
        "total_lines": notice.lines,
        **({"read_more": notice.read_more} if notice.stored else {}),
        "preview": notice.preview,
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
