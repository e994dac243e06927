"""Turns what is searched into text, and back: text, bytes, and bytes of UTF-16.

Each byte becomes one character. So rules find ASCII in bytes of any kind, also in UTF-8 and in binary data.
"""

from __future__ import annotations

from typing import Any, Final

_BYTE_ORDER_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UNIT: Final = 2
"""The bytes of a mark, and of a character in UTF-16."""


class TextForm:
    """Text, as it is."""

    is_bytes: bool = False
    """Whether a character stands for a byte."""
    rest: Any = ""
    """Half a character at the end of the chunks, which is not text yet."""

    def decoded(self, chunk: Any) -> str:
        """Return a chunk as text."""
        return str(chunk)

    def encoded(self, text: str) -> Any:
        """Return text in the form of the chunks."""
        return text


class BytesForm(TextForm):
    """Bytes of any kind."""

    is_bytes = True
    rest = b""

    def decoded(self, chunk: Any) -> str:
        """Return a chunk as text of its bytes."""
        return str(chunk, "latin-1")

    def encoded(self, text: str) -> Any:
        """Return text as the bytes that its characters stand for."""
        return text.encode("latin-1")


class Utf16Form(TextForm):
    """Bytes of UTF-16, in which half a surrogate pair may stand alone."""

    rest: bytes = b""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding

    def decoded(self, chunk: Any) -> str:
        """Return the whole characters that have come."""
        data = self.rest + bytes(chunk)
        whole = len(data) // _UNIT * _UNIT
        self.rest = data[whole:]
        return data[:whole].decode(self._encoding, "surrogatepass")

    def encoded(self, text: str) -> Any:
        """Return text in this encoding."""
        return text.encode(self._encoding, "surrogatepass")


class ByteOrderMark:
    """Looks for that of UTF-16 at the beginning of bytes: Windows PowerShell writes it into files."""

    def __init__(self) -> None:
        self._beginning = b""

    def form(self, chunk: Any) -> Utf16Form | None:
        """Return the form of UTF-16 if the bytes prove with this chunk to begin with its mark."""
        if len(self._beginning) >= _UNIT:
            return None
        self._beginning += bytes(chunk[: _UNIT - len(self._beginning)])
        encoding = _BYTE_ORDER_MARKS.get(self._beginning)
        return None if encoding is None else Utf16Form(encoding)
