"""Recognises pictures and sound in data: the binary parts of a value, which are no text for a model."""

from __future__ import annotations

from typing import Any, Final

from overspill.shapes.fields import is_a, text_field

_PICTURES: Final = frozenset(
    {"image", "input_image", "image_url", "audio", "input_audio", "video", "media"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)
_MIN_PAYLOAD_CHARS: Final = 256
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\r\n"
DATA_FIELDS: Final = frozenset(
    {"data", "source", "url", "image_url", "input_audio", "base64", "base64_data", "base64_image", "bytes"}
    | {"file", "file_data", "resource", "blob", "image", "audio", "video", "document"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)
"""Fields that hold binary data, or what holds that."""


def is_picture(holder: Any, step: Any, *, is_inside: bool) -> bool:
    """Return whether `holder` is a block of a picture or sound, or what holds the data in such a block."""
    return (
        is_inside or (isinstance(step, str) and step in _PICTURES) or text_field(holder, "type") in _PICTURES
    )


def is_payload(step: Any, part: Any) -> bool:
    """Return whether a field of a picture is its binary data, as bytes, base64 or a `data:` URL."""
    if step not in DATA_FIELDS:
        return False
    if is_a(part, (bytes, bytearray)):
        return True
    if not is_a(part, str) or len(part) < _MIN_PAYLOAD_CHARS:
        return False
    return part.startswith("data:") or (part.isascii() and not part.encode().translate(None, _BASE64))
