"""Reads replies: whether they come from S3, which range they have, and when they were sent.

A proxy before the store may answer any request with 200 and a page although nothing was done. So a success
counts only if the reply has the fields that S3 sends with it.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overspill_service.objects.s3.http import Reply

COPIED: Final = b"CopyObjectResult"
"""The element that the answer to a copy has. S3 may answer 200 and report a failure in the body."""
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def is_of_object(reply: Reply) -> bool:
    """Return whether S3 stored the object, or sends it as long as it says: S3 names the object's ETag."""
    found = _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))
    is_cut = found is not None and len(reply.body) <= int(found[2]) - int(found[1])
    return "ETag" in reply.headers and not is_cut


def is_of_copy(reply: Reply) -> bool:
    return COPIED in reply.body


def is_of_removal(reply: Reply) -> bool:
    return reply.status == HTTPStatus.NO_CONTENT


def is_asked_for(reply: Reply, start: int) -> bool:
    """Return whether the range begins where it should. A suffix must end at the object's end."""
    found = _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))
    if found is None:
        return False
    first, last, size = map(int, found.groups())
    is_placed = first == start if start >= 0 else last + 1 == size
    return is_placed and len(reply.body) == last - first + 1


def is_no_page(reply: Reply) -> bool:
    """Return whether the answer to HEAD is not that of a web page.

    S3's have a header of AWS. Google's have headers of their own: empty ones say that they are HTML.
    """
    is_of_store = any(name.lower().startswith(("x-amz-", "x-goog-")) for name in reply.headers)
    is_html = "text/html" in reply.headers.get("Content-Type", "")
    return is_of_store or not is_html or reply.headers.get("Content-Length") == "0"


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
