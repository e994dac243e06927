"""The names of a capture: its id, the call that made it, and metadata of bounded size."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

MAX_VALUE: Final = 2048
"""UTF-8 bytes that one metadata value (session, call id, tool, label) may take."""
MAX_METADATA: Final = 8192
"""UTF-8 bytes that all metadata of a capture may take, names of labels included: the catalog keeps it."""
MAX_LABELS: Final = 32
SHORT_VALUE: Final = 1024
"""Bytes of a tool's name and of a status, as clients send them: then every session and call id has room."""
CAPTURE_ID: Final = re.compile(r"cap_[a-z2-7]{20}")
END: Final = r"$(?!\n)"
"""The end of a text, in patterns for JSON. Python's `$` alone matches before a last line end too."""
CALL_PREFIX: Final = "call:"


def capture_id(session: str, call_id: str, content_sha256: bytes) -> str:
    """Return the id of the capture of this content, which this call in this session gave.

    `"cap_" + base32(sha256(session, call id, sha256 of the content))[:20]`, lower case. Each text goes
    in as its UTF-8 bytes behind their length (8 bytes, big-endian), so that no two pairs collide.
    """
    state = hashlib.sha256()
    for text in (session, call_id):
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    state.update(content_sha256)
    return "cap_" + base64.b32encode(state.digest()).decode().lower()[:20]


def call_id_of(ref: str) -> str | None:
    """Return the tool-call id of a `call:` reference, or None for any other reference.

    Raises `ValueError` if the id is empty: then a variable was not set, and it names no tool call.
    """
    if not ref.startswith(CALL_PREFIX):
        return None
    if ref == CALL_PREFIX:
        raise ValueError(f"{CALL_PREFIX} names no tool call: the call's id must follow it, and is empty here")
    return ref.removeprefix(CALL_PREFIX)


def fit(value: str, limit: int = MAX_VALUE) -> str:
    """Return `value` as metadata may have it: lone surrogates replaced, at most `limit` UTF-8 bytes.

    A longer value keeps its beginning and ends in `~` and 32 hex digits of its SHA-256, so that equal
    values stay equal and different ones different: a lookup by a 10 KB call id still finds its capture.
    """
    data = value.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode()
    mark = "~" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return data[: limit - len(mark)].decode("utf-8", "ignore") + mark
