"""The metadata of a capture in the headers of an upload, parsed and checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs
from overspill.wire import (
    MAX_LABELS,
    MAX_METADATA,
    MAX_VALUE,
    Header,
    decode_digest,
    decode_header,
    decode_labels,
)

from overspill_service.archive.metadata import CaptureMetadata
from overspill_service.errors import InvalidHeader
from overspill_service.web.header_fields import list_field, single_field, whole_number

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

FORM: Final = "application/x-www-form-urlencoded"
"""The content type that curl sends with any `--data-binary`. It says nothing, so the content is examined."""
_MAX_DIGITS: Final = 12
"""A TTL of more digits is longer than any tenant allows."""
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
# Restricted names of RFC 6838, section 4.2. The value is sent back to browsers, so it is checked.
_MEDIA_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(\s*;\s*[A-Za-z0-9!#$&^_.+-]{1,127}=[\x20-\x7e]{1,127})*"
)


def metadata_of(headers: CIMultiDictProxy[str]) -> CaptureMetadata:
    """Return the metadata in the headers.

    Raises `InvalidHeader` that names the header and what is allowed.
    """
    metadata = CaptureMetadata(
        session=_value(headers, Header.SESSION),
        call_id=_value(headers, Header.CALL_ID),
        tool=_value(headers, Header.TOOL),
        status=_value(headers, Header.STATUS),
        content_type=_media_type(headers),
        labels=_labels(headers),
        ttl=_ttl(headers),
    )
    _require_small(metadata)
    return metadata


def _require_small(metadata: CaptureMetadata) -> None:
    """Raise `InvalidHeader` if the catalog would have to keep too much of one capture."""
    if (size := metadata.size) > MAX_METADATA:
        raise InvalidHeader(
            f"session, call id, tool, status, type and labels have {size} bytes of UTF-8 together, and "
            f"may have {MAX_METADATA}: shorten the labels, or store them as a capture of their own"
        )


def digest_of(headers: CIMultiDictProxy[str]) -> bytes | None:
    """Return the announced SHA-256. Raises `InvalidHeader`."""
    field = list_field(headers, Header.REPR_DIGEST)
    if field is None:
        return None
    try:
        return decode_digest(field)
    except ValueError as error:
        raise InvalidHeader(str(error)) from error


def _value(headers: CIMultiDictProxy[str], name: str) -> str:
    return _decoded(name, single_field(headers, name) or "")


def _decoded(name: str, field: str) -> str:
    """Return the text of a header's value. Raises `InvalidHeader`, which names the header."""
    try:
        value = decode_header(field)
    except UnicodeDecodeError as error:
        raise InvalidHeader(f"{name} must be percent-encoded UTF-8") from error
    if len(value.encode("utf-8", "replace")) > MAX_VALUE:
        raise InvalidHeader(f"{name} may have {MAX_VALUE} bytes of UTF-8 at most; it is data, shorten it")
    if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidHeader(f"{name} must be percent-encoded UTF-8")
    return value


def _media_type(headers: CIMultiDictProxy[str]) -> str:
    field = single_field(headers, hdrs.CONTENT_TYPE) or ""
    if field.lower().startswith(FORM):
        return ""
    if field and not _MEDIA_TYPE.fullmatch(field):
        raise InvalidHeader(
            f"Content-Type {field[:100]!r} is not a media type, such as text/plain; charset=utf-8"
        )
    return field


def _labels(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, field in _encoded_labels(headers):
        label = name.lower()
        if not _LABEL.fullmatch(label):
            raise InvalidHeader(f"the label {label[:100]!r} must be 1 to 63 of a-z, 0-9, '_', '.' and '-'")
        if label in labels:
            raise InvalidHeader(f"{Header.LABEL}{label} is given twice; send it once")
        labels[label] = _decoded(f"{Header.LABEL}{label}", field)
    if len(labels) > MAX_LABELS:
        raise InvalidHeader(f"{len(labels)} labels are more than the {MAX_LABELS} that are allowed")
    return labels


def _encoded_labels(headers: CIMultiDictProxy[str]) -> list[tuple[str, str]]:
    """Return all labels with their encoded values, in whichever of the two forms they came."""
    prefix = Header.LABEL.lower()
    found = [
        (name[len(prefix) :], value) for name, value in headers.items() if name.lower().startswith(prefix)
    ]
    if field := list_field(headers, Header.LABELS):
        try:
            found += decode_labels(field)
        except ValueError as error:
            raise InvalidHeader(str(error)) from error
    return found


def _ttl(headers: CIMultiDictProxy[str]) -> int | None:
    field = single_field(headers, Header.TTL)
    if field is None:
        return None
    seconds = whole_number(field, _MAX_DIGITS)
    if seconds is None:
        problem = f"is not a whole number of seconds of at most {_MAX_DIGITS} digits"
        raise InvalidHeader(f"{Header.TTL} {field[:100]!r} {problem}")
    return seconds
