"""Recognises pictures and sound in data: the binary parts of a value, which are no text for a model."""

from __future__ import annotations

from typing import Any, Final

from overspill.shapes.fields import is_a, text_field

_PICTURES: Final = frozenset(
    {"image", "input_image", "image_url", "audio", "input_audio", "video", "media"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)
_MIN_PAYLOAD_CHARS: Final = 256
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\r\n")


def is_picture(holder: Any, step: Any, *, is_inside: bool) -> bool:
    """Return whether `holder` is a block of a picture or sound, or what holds the data in such a block."""
    return (
        is_inside or (isinstance(step, str) and step in _PICTURES) or text_field(holder, "type") in _PICTURES
    )


def is_payload(part: Any) -> bool:
    """Return whether `part` is binary data, as bytes, base64 or a `data:` URL."""
    if is_a(part, (bytes, bytearray)):
        return True
    if not is_a(part, str) or len(part) < _MIN_PAYLOAD_CHARS:
        return False
    return part.startswith("data:") or _BASE64.issuperset(part[:_MIN_PAYLOAD_CHARS].encode())
