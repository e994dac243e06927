"""Preconditions (RFC 9110, section 13): pure functions over a request's header fields.

A capture never changes and has no modification date, so conditions on dates are ignored (sections 13.1.3
and 13.1.4), and an `If-Range` with a date never holds. `service/docs/http.md` lists the rules and the test of
each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs

from overspill_service.errors import PreconditionFailed
from overspill_service.web.header_fields import list_field

if TYPE_CHECKING:
    from overspill_service.web.header_fields import Headers

SAFE: Final = frozenset({"GET", "HEAD"})
ANY: Final = "*"
# entity-tag (section 8.8.3); bytes above 0x7F are allowed in it.
_TAG: Final = re.compile(r'(W/)?("[^"\x00-\x20\x7f]*")')
# A list may have empty members (section 5.6.1.2), so several commas in a row are right.
_TAGS: Final = re.compile(rf"[\s,]*(?:{_TAG.pattern}\s*(?:,[\s,]*|$))+")


def are_given(headers: Headers) -> bool:
    """Return whether the request has a precondition that this service evaluates."""
    return hdrs.IF_MATCH in headers or hdrs.IF_NONE_MATCH in headers


def is_not_modified(headers: Headers, method: str, tag: str | None, *, exists: bool = True) -> bool:
    """Evaluate the preconditions in their order (section 13.2.2). Return whether the answer is 304.

    `tag` is the strong entity tag of the selected representation, None if it has none. Raises
    `PreconditionFailed` (412).
    """
    if_match = list_field(headers, hdrs.IF_MATCH)
    if if_match is not None and not _list_has_tag(if_match, tag, exists=exists, weakly=False):
        raise PreconditionFailed(f"If-Match asks for {if_match[:200]}, but the tag is {tag or 'none'}")
    if_none_match = list_field(headers, hdrs.IF_NONE_MATCH)
    if if_none_match is None or not _list_has_tag(if_none_match, tag, exists=exists, weakly=True):
        return False
    if method in SAFE:
        return True
    raise PreconditionFailed(f"If-None-Match rules out {if_none_match[:200]}, and it is there already")


def allows_range(headers: Headers, tag: str) -> bool:
    """Return whether `If-Range`, if given, is exactly this tag.

    A weak tag or a date never is (section 13.1.5).
    """
    field = list_field(headers, hdrs.IF_RANGE)
    return field is None or field.strip() == tag


def _list_has_tag(field: str, tag: str | None, *, exists: bool, weakly: bool) -> bool:
    """Return whether a list of entity tags has this one (section 8.8.3.2). A malformed list has none."""
    if field.strip() == ANY:
        return exists
    if not _TAGS.fullmatch(field):
        return False
    return any(found == tag and (weakly or not weak) for weak, found in _TAG.findall(field))
