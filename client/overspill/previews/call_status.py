"""How a tool call ended, in the words of a notice: succeeded or failed, and the exit code."""

from __future__ import annotations

import re
from typing import Final

from overspill.text.reasons import for_model

_MAX_CHARS: Final = 60
_EXIT: Final = re.compile(r"exit(?:ed)?(?: code| status| with)?[ :=]*(-?\d{1,10})", re.IGNORECASE)
_SUCCEEDED: Final = frozenset(
    {"ok", "success", "succeeded", "successful", "completed", "complete", "passed", "done"}
)
_FAILED: Final = frozenset({"error", "failed", "failure", "fail", "errored"})


def status_words(status: str) -> str:
    """Return words such as `failed: exit 3`. An unknown status is kept, cut to 60 characters."""
    text = for_model(status[:_MAX_CHARS])
    if found := _EXIT.fullmatch(text):
        return exit_words(int(found[1]))
    if text.lower() in _SUCCEEDED:
        return "succeeded"
    if text.lower() in _FAILED:
        return "failed"
    return f"status: {text}" if text else ""


def exit_words(code: int) -> str:
    """Return the words for an exit code."""
    return f"{'failed' if code else 'succeeded'}: exit {code}"
