"""The words of a notice: what happened, until when the output is kept, how to read more of it.

The same facts give the same bytes. An output that is stored nowhere has no handle.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Final

from overspill.previews.call_status import status_words
from overspill.previews.notice_facts import Facts, Notice, StoreResult
from overspill.text import quantities
from overspill.text.lookalikes import defuse
from overspill.text.reasons import for_model
from overspill.text.sanitize import sanitize
from overspill.text.tokens import estimate_from_size
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

_MAX_TOOL: Final = 100
_MAX_CALL_ID: Final = 64
"""The most characters of an id. A longer one, such as one with a signature in it, helps no model."""
_MOST_KINDS: Final = 4
"""Kinds of masked secrets that a notice names."""
_SHORT_REASON: Final = 60
_SHORT_STATUS: Final = 24
"""Characters of a reason and of a status in a terse notice, at most."""
_BEGIN: Final = "[overspill]"
_LOST: Final = "[overspill NOT STORED]"
_WHOLE: Final = "Stored whole"
DO_NOT_RERUN: Final = "Do not rerun."
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""The months in English: `strftime` writes them in the language of the process's locale."""


def make_notice(facts: Facts, stored: StoreResult, *, is_terse: bool = False) -> Notice:
    """Return the notice of an output that went where `kept` says; a terse one for a small preview."""
    if is_terse:
        return _terse(facts, stored)
    if stored.outcome is Outcome.TRUNCATED:
        return truncated(facts, stored.reason)
    how = how_to_read(facts, stored, with_modes=True)
    head = (
        f"{_BEGIN} {_too_long(facts)} {_extent(facts)}{location_words(stored)}{expiry_words(stored)}"
        f"{reason_words(stored)}.{masked_words(facts)}\n"
        f"Read more: {how}. {DO_NOT_RERUN}{repeat_words(facts)}"
    )
    return _notice(facts, stored.outcome, head, how_to_read(facts, stored), stored.path)


def captured(facts: Facts, expires: datetime) -> Notice:
    """Return the notice of an output that the service has whole until `expires`."""
    return make_notice(facts, StoreResult(outcome=Outcome.CAPTURED, expires=expires))


def spooled(facts: Facts, expires: datetime | None, reason: str, path: str = "") -> Notice:
    """Return the notice of an output that is whole on this machine, at `path` if its agent can open that.

    `reason` says why the service does not have it; empty if nobody meant it to.
    """
    return make_notice(facts, StoreResult(outcome=Outcome.SPOOLED, expires=expires, reason=reason, path=path))


def truncated(facts: Facts, reason: str) -> Notice:
    """Return the notice of an output that could not be stored; what the preview leaves out is gone."""
    lost = "What the preview leaves out is lost" if facts.preview else "All of it is lost"
    head = (
        f"{_LOST} {_too_long(facts)} It could NOT be stored: {for_model(reason)}.{masked_words(facts)}\n"
        f"{lost}. If you need it, run the tool again with a narrower question (a filter, a range, fewer "
        f"files).{repeat_words(facts)}"
    )
    return _notice(facts, Outcome.TRUNCATED, head, "")


def _terse(facts: Facts, stored: StoreResult) -> Notice:
    size = f"{quantities.plural(facts.size, 'byte')}, {quantities.plural(facts.lines, 'line')}"
    end = status_words(facts.status)
    what = f"{size}, {end}" if end and len(end) <= _SHORT_STATUS else size
    if stored.outcome is Outcome.TRUNCATED:
        reason = for_model(stored.reason)
        short = reason if len(reason) <= _SHORT_REASON else f"{reason[: _SHORT_REASON - 1]}…"
        return _notice(facts, stored.outcome, f"{_LOST} {what}: {short}. Ask for less.", "")
    read_more = how_to_read(facts, stored)
    use = read_more if stored.path else f"use {read_more}"
    day = "" if stored.expires is None else f" until {stored.expires.astimezone(UTC):%Y-%m-%d}"
    part = ", only its beginning" if facts.missing else ""
    part += ", secrets masked" if facts.masked else ""
    head = f"{_BEGIN} {what}{part}{day}; do not rerun, {use}"
    return _notice(facts, stored.outcome, head, read_more, stored.path)


def without_middle(made: Notice, gone: int, why: str) -> Notice:
    """Return a notice that also says that `gone` bytes of the output's middle were never handed over."""
    said = f"Stored without {quantities.plural(gone, 'byte')} of its middle ({for_model(why)})"
    return replace(made, head=made.head.replace(f". {_WHOLE}", f". {said}", 1))


# --- parts of notices ------------------------------------------------------------------------------


def _extent(facts: Facts) -> str:
    return f"Only its beginning is stored ({for_model(facts.missing)})" if facts.missing else _WHOLE


def location_words(stored: StoreResult) -> str:
    """Say where the output is, for the end of a sentence; empty if it is in the service."""
    if stored.outcome is Outcome.CAPTURED:
        return ""
    if stored.path:
        return f" in the file {shown_path(stored.path)}"
    return " on this machine alone" if stored.is_refused else " on this machine"


def expiry_words(stored: StoreResult) -> str:
    """Say until when it is kept; empty if nobody knows."""
    return "" if stored.expires is None else f" until {_instant(stored.expires)}"


def reason_words(stored: StoreResult) -> str:
    """Say why the service does not have it, and whether it will."""
    if stored.outcome is Outcome.CAPTURED or not stored.reason:
        return ""
    reason = for_model(stored.reason)
    if stored.is_refused:
        return f"; it is not in the service ({reason})"
    later = "" if stored.path else "; it waits to be uploaded"
    return f"; the service could not take it ({reason}){later}"


def masked_words(facts: Facts) -> str:
    """Say how many secrets of which kinds are masked, as a sentence; empty if there are none."""
    if not facts.masked:
        return ""
    total, kinds = sum(facts.masked.values()), sorted(facts.masked)
    more = f" and {len(kinds) - _MOST_KINDS} more kinds" if len(kinds) > _MOST_KINDS else ""
    named = ", ".join(f"{kind}={facts.masked[kind]}" for kind in kinds[:_MOST_KINDS])
    return f" {quantities.plural(total, 'secret')} masked: {named}{more}."


def how_to_read(facts: Facts, stored: StoreResult, *, with_modes: bool = False) -> str:
    """Return the call that reads more, and what else it can do; of a file, what to do with it."""
    if stored.path:
        return f"read parts of {shown_path(stored.path)} with your file-reading tool, or grep it"
    modes = f"; {facts.modes}" if facts.modes and with_modes else ""
    return facts.reader.replace("{id}", facts.id) + modes


def repeat_words(facts: Facts) -> str:
    """Say that it is an earlier output again; empty if it is not."""
    if facts.same_as is None:
        return ""
    again = f" It is byte for byte an earlier output of this session, whose handle is {facts.same_as}."
    if not facts.is_known:
        return again
    times = f"{facts.repeats + 1} times now"
    return f"{again} You got these bytes {times}, so no preview: read the capture, or ask something else."


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
    size, lines = quantities.plural(facts.size, "byte"), quantities.plural(facts.lines, "line")
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
