"""Headers beyond the standard ones, how they carry any text, and digests (RFC 9530)."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Mapping


class Header:
    """Header names beyond the standard ones. Values are percent-encoded UTF-8 (RFC 3986)."""

    SESSION: Final = "Overspill-Session"
    CALL_ID: Final = "Overspill-Call-Id"
    TOOL: Final = "Overspill-Tool"
    STATUS: Final = "Overspill-Status"
    TTL: Final = "Overspill-Ttl"
    LABELS: Final = "Overspill-Labels"
    """Any number of labels in one field, see `encode_labels`."""
    LABEL: Final = "Overspill-Label-"
    """One label, whose name follows. Proxies drop a field with a `.` or `_` in its name, without a word."""
    SHA256: Final = "Overspill-Sha256"
    SIZE: Final = "Overspill-Size"
    STATE: Final = "Overspill-State"
    EXPIRES: Final = "Overspill-Expires"
    KEY_EXPIRES: Final = "Overspill-Key-Expires"
    REPR_DIGEST: Final = "Repr-Digest"
    CONTENT_DIGEST: Final = "Content-Digest"
    UPLOAD_OFFSET: Final = "Upload-Offset"
    UPLOAD_COMPLETE: Final = "Upload-Complete"
    DURABLE_OFFSET: Final = "Overspill-Durable-Offset"
    PRODUCER: Final = "Overspill-Producer"
    """A random word of the producer, so that two producers of one capture are noticed."""
    PAGE_TOKEN: Final = "Overspill-Page-Token"  # noqa: S105  (a name)
    REQUEST_ID: Final = "X-Request-Id"


def encode_header(value: str) -> str:
    """Encode any text as a header value: percent-encoded UTF-8, so no control byte ever reaches the wire."""
    return quote(value, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~").replace(" ", "%20")


def decode_header(value: str) -> str:
    """Decode what `encode_header` gives. Raises `UnicodeDecodeError` for bytes that are not UTF-8."""
    return unquote(value, errors="strict")


def encode_labels(labels: Mapping[str, str]) -> str:
    """Return the value of an `Overspill-Labels` field: `name=value, name=value`, with encoded values."""
    return ", ".join(f"{name}={encode_header(value).replace(',', '%2C')}" for name, value in labels.items())


def decode_labels(field: str) -> list[tuple[str, str]]:
    """Return the names and the still encoded values of what `encode_labels` gives. Raises `ValueError`.

    Members that are empty count for nothing (RFC 9110, section 5.6.1.2).
    """
    found = [member.strip().partition("=") for member in field.split(",") if member.strip()]
    if not all(equals for _, equals, _ in found):
        raise ValueError(f"{Header.LABELS} needs the form name=value, name=value")
    return [(name, value) for name, _, value in found]


def encode_digest(sha256: bytes) -> str:
    """Return the value of a `Repr-Digest` field for a SHA-256 digest of 32 bytes."""
    return f"sha-256=:{base64.b64encode(sha256).decode()}:"


_KEY: Final = r"[A-Za-z*][A-Za-z0-9_.*-]*"
_STRING: Final = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_BARE: Final = rf"(?: :[A-Za-z0-9+/=]*: | {_STRING} | [A-Za-z0-9!#$%&'*+.^_`|~:/?-]+ )"
_LIST: Final = rf"\( (?: [^()\"] | {_STRING} )* \)"
_PARAMETERS: Final = rf"(?: ;[ ]*{_KEY} (?: ={_BARE} )? )*"
_MEMBER: Final = re.compile(
    rf"[ \t]* (?P<key>{_KEY}) (?: =(?P<value> {_BARE} | {_LIST} ) )? {_PARAMETERS} [ \t]* (?P<comma>,)?",
    re.VERBOSE,
)
"""One member of a dictionary (RFC 8941, section 3.2). Values that are not byte sequences are read loosely."""


def decode_digest(field: str) -> bytes:
    """Return the SHA-256 digest (32 bytes) of a `Repr-Digest` field. Raises `ValueError` as `digest_in`."""
    digest = digest_in(field, "sha-256", hashlib.sha256().digest_size)
    if digest is None:
        raise ValueError("Repr-Digest needs the form sha-256=:BASE64: with a digest of 32 bytes")
    return digest


def digest_in(field: str, algorithm: str, size: int) -> bytes | None:
    """Return the digest of one algorithm in a field of RFC 9530. None if it has none of `size` bytes.

    The field is a dictionary of algorithms (RFC 8941): other algorithms and all parameters are ignored, and
    of a repeated algorithm the last one counts. None if it is malformed; raises `ValueError` for what is no
    base64.
    """
    found, position, follows = "", 0, True
    while follows and (member := _MEMBER.match(field, position)):
        if member["key"].lower() == algorithm:
            found = member["value"] or ""
        position, follows = member.end(), member["comma"] is not None
    if position == len(field) and not follows and found[:1] == ":":
        digest = base64.b64decode(found[1:-1], validate=True)
        return digest if len(digest) == size else None
    return None
