"""Header fields (RFC 9110, section 5): several lines form one list, and some fields may come only once."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from aiohttp import HttpVersion10, HttpVersion11, hdrs

from overspill_service.errors import BadRequest, HeadersTooLarge, InvalidHeader

if TYPE_CHECKING:
    from aiohttp import web
    from multidict import CIMultiDictProxy

    Headers = CIMultiDictProxy[str]

MAX_HEADERS_BYTES: Final = 64 * 1024
"""Bytes of all fields: a capture's metadata has 8 KiB, percent-encoded three times that."""
LONG_HEAD_BYTES: Final = 8 * 1024
"""A request with more bytes is its connection's last: aiohttp keeps a request until the next one comes."""
MAX_LASTING_HEAD_BYTES: Final = 16 * 1024
"""Bytes of the head of a request that may last for minutes: a pattern has 4 KiB, encoded three times that."""
MAX_OFFSET_DIGITS: Final = 15
"""Digits of an offset in a field: JSON's numbers are exact up to there."""
FIELD_BYTES: Final = 4
"""Bytes around a field: colon, space and the end of its line."""

_VERSIONS: Final = (HttpVersion11, HttpVersion10)
_AUTHORITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


def list_field(headers: Headers, name: str) -> str | None:
    """Return all lines of a list field as one, joined by commas (section 5.3). None if there are none."""
    lines = headers.getall(name, ())
    return ", ".join(lines) if lines else None


def single_field(headers: Headers, name: str) -> str | None:
    """Return the value of a field that is not a list. Raises `InvalidHeader` if it is given twice."""
    lines = headers.getall(name, ())
    if len(lines) > 1:
        raise InvalidHeader(f"{name} is given {len(lines)} times; send it once")
    return lines[0] if lines else None


def whole_number(field: str, most_digits: int = MAX_OFFSET_DIGITS) -> int | None:
    """Return the number in a field. None if there is no number, or one with too many digits."""
    return int(field) if field.isascii() and field.isdecimal() and len(field) <= most_digits else None


def require_small(request: web.Request) -> int:
    """Return the bytes of the head. Raises `HeadersTooLarge` if its fields are more than a request needs."""
    fields = request.raw_headers
    size = sum(map(len, chain.from_iterable(fields))) + FIELD_BYTES * len(fields)
    if size > MAX_HEADERS_BYTES:
        raise HeadersTooLarge(size, MAX_HEADERS_BYTES)
    return size + len(request.raw_path)


def is_framed_plainly(request: web.Request) -> bool:
    """Return whether every server on the way sees the same end of the body (RFC 9112, 6.1 and 6.3)."""
    coding = list_field(request.headers, hdrs.TRANSFER_ENCODING)
    return coding is None or (coding.strip().lower() == "chunked" and request.version >= HttpVersion11)


def require_well_formed(request: web.Request) -> None:
    """Raise `BadRequest` for a request without exactly one Host, or with a target that is not UTF-8.

    Also for one whose body has another transfer coding than `chunked`, or one in HTTP/1.0; for another
    version of HTTP; and for a target with another host than that of `Host`.

    Without the last check a grep for `%FF` would search for these three characters. Raises `InvalidHeader` if
    a browser's field about the origin of a request is given twice.
    """
    headers = request.headers
    if request.version not in _VERSIONS:
        raise BadRequest("the request has another version than HTTP/1.1 and HTTP/1.0")
    hosts = len(headers.getall(hdrs.HOST, ()))
    if hosts > 1 or (not hosts and request.version >= HttpVersion11):
        raise BadRequest(f"the request has {hosts} Host fields; it needs one (RFC 9112, section 3.2)")
    if not is_framed_plainly(request):
        raise BadRequest("the only Transfer-Encoding is chunked, in HTTP/1.1 (RFC 9112, section 6.1)")
    if not request.raw_path.startswith("/"):
        _require_one_host(request.raw_path, headers.get(hdrs.HOST, ""))
    for name in (hdrs.ORIGIN, "Sec-Fetch-Site"):
        if name in headers:
            single_field(headers, name)
    if "%" in request.raw_path or not request.raw_path.isascii():
        _require_utf8(request.raw_path)


def _require_one_host(target: str, host: str) -> None:
    """Raise `BadRequest` if a target in absolute form (RFC 9112, section 3.2.2) has another host than `Host`.

    Servers on the way may go by either.
    """
    authority = _AUTHORITY.match(target)
    if authority is not None and authority[1].lower() != host.lower():
        raise BadRequest("the target of the request names another host than its Host field")


def _require_utf8(path: str) -> None:
    target = path.encode("utf-8", "surrogateescape")
    try:
        unquote_to_bytes(target).decode()
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"the path or a parameter is not UTF-8 once its percent signs are decoded: {error.reason}"
        ) from error
