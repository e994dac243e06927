"""The words of a notice: what happened, until when the output is kept, how to read more of it.

The same facts give the same bytes. An output that is stored nowhere has no handle.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC
from typing import Final

from overspill.previews.notice_facts import Facts, Notice, StoreResult
from overspill.previews.notice_words import (
    expiry_words,
    how_to_read,
    location_words,
    masked_words,
    reason_words,
    repeat_words,
    status_words,
)
from overspill.text import quantities
from overspill.text.lookalikes import defuse
from overspill.text.reasons import for_model
from overspill.text.sanitize import sanitize
from overspill.text.tokens import estimate_from_size
from overspill.wire import Outcome

_MAX_TOOL: Final = 100
_MAX_CALL_ID: Final = 64
"""The most characters of an id. A longer one, such as one with a signature in it, helps no model."""
_PLAIN_NAME: Final = re.compile(r"(?!.*://)[\w.:/@#+-]+")
_DASHES: Final = re.compile(r"-{2,}")
_SHORT_REASON: Final = 60
_SHORT_STATUS: Final = 24
"""The most characters of a reason, and of a status, in a terse notice."""
_BEGIN: Final = "[overspill]"
_LOST: Final = "[overspill NOT STORED]"
_WHOLE: Final = "Stored whole"
DO_NOT_RERUN: Final = "Do not rerun."


def make_notice(facts: Facts, stored: StoreResult, *, is_terse: bool = False) -> Notice:
    """Return the notice of an output that went where `stored` says; a terse one for a small preview."""
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


def without_middle(notice: Notice, missing_bytes: int, reason: str) -> Notice:
    """Return a notice that also says that `missing_bytes` of the output's middle were never handed over."""
    said = f"Stored without {quantities.plural(missing_bytes, 'byte')} of its middle ({for_model(reason)})"
    return replace(notice, head=notice.head.replace(f". {_WHOLE}", f". {said}", 1))


def _extent(facts: Facts) -> str:
    return f"Only its beginning is stored ({for_model(facts.missing)})" if facts.missing else _WHOLE


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


def _one_line(text: str) -> str:
    """Return a name as the notice says it: in quotes if it is more than a plain word."""
    line = defuse(" ".join(sanitize(text).split()))
    if not line or _PLAIN_NAME.fullmatch(line):
        return line
    return '"' + _DASHES.sub("-", line).replace('"', "'") + '"'
