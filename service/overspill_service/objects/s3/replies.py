"""What the header fields of a reply say: which range it is, and when it was sent."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overspill_service.objects.s3.http import Reply

_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def is_asked_for(reply: Reply, start: int) -> bool:
    """Return whether the range begins where it should. A suffix must end at the object's end."""
    found = _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))
    if found is None:
        return False
    first, last, size = map(int, found.groups())
    is_placed = first == start if start >= 0 else last + 1 == size
    return is_placed and len(reply.body) == last - first + 1


def clock_skew(reply: Reply, now: float) -> float:
    """Return the seconds by which this machine's clock is ahead of the store's, 0 if unknown."""
    sent = date_of(reply)
    return 0.0 if sent is None else now - sent


def date_of(reply: Reply) -> float | None:
    """Return the time in the answer's `Date`, None if there is none or it is malformed."""
    try:
        return parsedate_to_datetime(reply.headers.get("Date", "")).timestamp()
    except ValueError:
        return None
