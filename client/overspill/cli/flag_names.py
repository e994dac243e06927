"""Replaces the names of parameters and headers, in what the service says, by the flags of the commands."""

from __future__ import annotations

import re
from typing import Final

_SAME_NAMES: Final = (
    "call_id",
    "content_type",
    "cursor",
    "from_end",
    "limit",
    "session",
    "since",
    "tool",
    "ttl",
)
"""Parameters whose flags have their names."""
_FLAGS: Final = {
    "after": "-A",
    "before": "-B",
    "context": "-C",
    "fixed": "-F",
    "ignore_case": "-i",
    "invert": "-v",
    "lines": "-n",
    "max_matches": "-m",
    "pattern": "PATTERN",
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES},
}
_CURSOR: Final = (
    "cursor= takes what `next` of an earlier answer of the same search holds with the same from_end, "
    "or none to search from the start"
)
_CURSOR_FLAG: Final = (
    "--cursor takes the cursor that the same search printed when it stopped, with the same options; "
    "leave it out to search from the start"
)
_PHRASES: Final = (
    ("GET /v1/captures lists", "`overspill ls` lists"),
    (_CURSOR, _CURSOR_FLAG),
    (
        "name its session with session=, or say any_session=true",
        "name its session with --session, or search all sessions with --session ''",
    ),
)
_LABEL: Final = re.compile(r"Overspill-Label-(\S*)")
_HEADER: Final = re.compile(r"Overspill-(Call-Id|Session|Status|Tool|Ttl)|Content-Type")
_FLAG: Final = re.compile(rf"(?:`({'|'.join(_FLAGS)})`|\b({'|'.join(_FLAGS)})=)(?:(?:true|false)\b)?")


def with_flag_names(detail: str) -> str:
    """Return the detail of a problem with the flags of the commands in it."""
    for phrase, replacement in _PHRASES:
        detail = detail.replace(phrase, replacement)
    detail = _LABEL.sub(r"--label \1", detail)
    detail = _HEADER.sub(lambda match: f"--{(match[1] or match[0]).lower()}", detail)
    return _FLAG.sub(lambda match: _FLAGS[match[1] or match[2]], detail)
