"""The words of a notice: how the call ended, where its output is and until when, and how to read it."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Final

from overspill.text import quantities
from overspill.text.lookalikes import defuse
from overspill.text.reasons import for_model
from overspill.text.sanitize import sanitize
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.previews.notice_facts import Facts, StoreResult


_MAX_STATUS_CHARS: Final = 60
_EXIT: Final = re.compile(r"exit(?:ed)?(?: code| status| with)?[ :=]*(-?\d{1,10})", re.IGNORECASE)
_SUCCEEDED: Final = frozenset(
    {"ok", "success", "succeeded", "successful", "completed", "complete", "passed", "done"}
)
_FAILED: Final = frozenset({"error", "failed", "failure", "fail", "errored"})
_MAX_KINDS: Final = 4
"""Kinds of masked secrets that a notice names."""
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""The months in English: `strftime` writes them in the language of the process's locale."""


def status_words(status: str) -> str:
    """Return words such as `failed: exit 3`. An unknown status is kept, cut to 60 characters."""
    text = for_model(status[:_MAX_STATUS_CHARS])
    if found := _EXIT.fullmatch(text):
        code = int(found[1])
        return f"{'failed' if code else 'succeeded'}: exit {code}"
    if text.lower() in _SUCCEEDED:
        return "succeeded"
    if text.lower() in _FAILED:
        return "failed"
    return f"status: {text}" if text else ""


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
    more = f" and {len(kinds) - _MAX_KINDS} more kinds" if len(kinds) > _MAX_KINDS else ""
    named = ", ".join(f"{kind}={facts.masked[kind]}" for kind in kinds[:_MAX_KINDS])
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


def shown_path(path: str) -> str:
    """Return a path on one line, safe to show."""
    return defuse(" ".join(sanitize(path).split("\n")))


def _instant(when: datetime) -> str:
    """Return the instant in whole minutes, rounded down: nothing is promised for longer than it is kept.

    It has no year: captures are kept for days, and a year costs four tokens.
    """
    at = when.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at:%H:%M} UTC"
