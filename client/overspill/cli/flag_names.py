"""Replaces the names of parameters and headers, in what the service says, by the flags of the commands."""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = {
    "after": "-A",
    "before": "-B",
    "content_type": "--content-type",
    "context": "-C",
    "call_id": "--call-id",
    "cursor": "--cursor",
    "fixed": "-F",
    "from_end": "--from-end",
    "ignore_case": "-i",
    "invert": "-v",
    "limit": "--limit",
    "lines": "-n",
    "max_matches": "-m",
    "pattern": "PATTERN",
    "session": "--session",
    "since": "--since",
    "tool": "--tool",
    "ttl": "--ttl",
}
_HEADERS: Final = {
    "Content-Type": "--content-type",
    "Overspill-Call-Id": "--call-id",
    "Overspill-Session": "--session",
    "Overspill-Status": "--status",
    "Overspill-Tool": "--tool",
    "Overspill-Ttl": "--ttl",
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
_HEADER: Final = re.compile("|".join(sorted(_HEADERS, key=len, reverse=True)))
_FLAG: Final = re.compile(rf"(?:`({'|'.join(_FLAGS)})`|\b({'|'.join(_FLAGS)})=)(?:(?:true|false)\b)?")


def with_flag_names(detail: str) -> str:
    """Return the detail of a problem with the flags of the commands in it."""
    for said, meant in _PHRASES:
        detail = detail.replace(said, meant)
    detail = _LABEL.sub(r"--label \1", detail)
    detail = _HEADER.sub(lambda match: _HEADERS[match[0]], detail)
    return _FLAG.sub(lambda match: _FLAGS[match[1] or match[2]], detail)
