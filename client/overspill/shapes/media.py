"""Find images and other binary data in tool outputs, and name them by type and size for people to read.

Data comes as bytes, as base64 beside its media type, or as a `data:` URL in any text.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.shapes.fields import get, text_field
from overspill.text import quantities
from overspill.text.media_types import BINARY_TYPE, TEXT_TYPE, media_type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLOCKS: Final = frozenset(
    {
        *("image", "image_url", "input_image", "audio", "input_audio", "video"),
        *("media", "file", "input_file", "document", "resource"),
    }
)
_HOLDERS: Final = ("source", "resource", "image_url", "input_audio", "file", "inline_data", "inlineData")
_TYPE_FIELDS: Final = ("mimeType", "mime_type", "media_type", "mediaType")
_DATA_FIELDS: Final = ("data", "base64", "blob", "bytes", "file_data", "image_url", "url")
_AUDIO: Final = frozenset({"wav", "mp3", "flac", "opus", "ogg", "m4a"})
_IMAGES: Final = frozenset({"png", "jpeg", "gif", "webp"})
_MIN_BASE64_CHARS: Final = 64
"""Shorter text is not taken for base64 unless a media type stands beside it."""
_SNIFFED_CHARS: Final = 64

_TYPE: Final = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\s-]*={0,2}\s*")
_DATA_URL: Final = re.compile(
    r"data:(?P<type>[\w.+-]{1,100}/[\w.+-]{1,100})?(?:;[\w.+-]{1,100}=[\w.+-]{1,100}){0,4};base64,"
    r"(?P<data>[A-Za-z0-9+/_=%-]*)"
)


def placeholder(media_type: str, size: int) -> str:
    """Return the placeholder for data, such as `[image/png, 34.5 KB]`."""
    return f"[{media_type}, {quantities.readable_size(size)}]"


def bytes_for_display(data: bytes) -> str:
    """Return bytes of UTF-8 as text, other bytes as a placeholder."""
    kind = media_type_of(data)
    return data.decode() if kind == TEXT_TYPE else placeholder(kind, len(data))


def text_for_display(text: str) -> str:
    """Return `text` with placeholders for `data:` URLs; if all of it is base64 of a known kind, for all."""
    if ";base64," in text:
        text = _DATA_URL.sub(
            lambda found: placeholder(found["type"] or BINARY_TYPE, _size(found["data"])), text
        )
    kind = _kind_of_base64(text) if len(text) >= _MIN_BASE64_CHARS else None
    return text if kind is None or kind in {TEXT_TYPE, BINARY_TYPE} else placeholder(kind, _size(text))


def data_for_display(holder: Mapping[Any, Any], name: Any, value: Any) -> str | None:
    """Return a placeholder for base64 in a field beside its media type; None for any other field."""
    if name not in _DATA_FIELDS or not isinstance(value, str):
        return None
    kind = _type_in(holder)
    return placeholder(kind, _size(value)) if kind and _is_base64(value) else None


class _Data(NamedTuple):
    kind: str
    size: int


def block_for_display(block: Any) -> dict[str, Any] | None:
    """Return a block of binary data with the number of its `bytes` instead of them; None for other blocks."""
    if text_field(block, "type") not in _BLOCKS:
        return None
    found = _data_in(block) or next(filter(None, (_data_in(get(block, holder)) for holder in _HOLDERS)), None)
    if found is None:
        return None
    return {"type": text_field(block, "type"), "mimeType": found.kind, "bytes": found.size, "omitted": True}


def _data_in(holder: Any) -> _Data | None:
    if holder is None or isinstance(holder, (str, bytes, list, tuple, int, float)):
        return None
    for field in _DATA_FIELDS:
        data = get(holder, field)
        if isinstance(data, (bytes, bytearray)):
            return _Data(_type_in(holder) or media_type_of(bytes(data)), len(data))
        if isinstance(data, str) and (found := _DATA_URL.fullmatch(data)):
            return _Data(found["type"] or BINARY_TYPE, _size(found["data"]))
        if isinstance(data, str) and field not in {"url", "image_url"} and _is_base64(data):
            return _Data(_type_in(holder) or _kind_of_base64(data) or BINARY_TYPE, _size(data))
    return None


def _type_in(holder: Any) -> str:
    """Return the media type that `holder` names; empty if it names none, or text."""
    media_type = next(filter(None, (text_field(holder, name) for name in _TYPE_FIELDS)), "")
    if not media_type:
        form = text_field(holder, "format").lower()
        media_type = f"image/{form}" if form in _IMAGES else f"audio/{form}" if form in _AUDIO else ""
    return media_type if _TYPE.fullmatch(media_type) and not media_type.startswith("text/") else ""


def _is_base64(text: str) -> bool:
    return bool(text) and _BASE64.fullmatch(text) is not None


def _kind_of_base64(text: str) -> str | None:
    """Guess the media type of base64 from its first bytes; None if it is not base64."""
    if not _is_base64(text):
        return None
    head = "".join(text[: 2 * _SNIFFED_CHARS].split())[:_SNIFFED_CHARS]
    try:
        return media_type_of(
            base64.urlsafe_b64decode(head[: len(head) // 4 * 4].replace("+", "-").replace("/", "_"))
        )
    except (binascii.Error, ValueError):
        return None


def _size(encoded: str) -> int:
    """Return how many bytes base64 stands for. White space and `%3D` do not count."""
    ignored = sum(map(encoded.count, " \t\r\n=")) + 3 * encoded.count("%3D")
    return max(0, len(encoded) - ignored) * 3 // 4
