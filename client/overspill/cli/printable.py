r"""Makes untrusted text printable: a terminal shows control characters instead of obeying them.

C0 controls and DEL become their pictures (`␛`), C1 controls and bidirectional formatting their escapes
(`\x9b`, `\u202e`). Tabs, `\n` and `\r\n` stay. Unlike `sanitize` of
`text/sanitize` it removes nothing, so that it works on any piece of a text.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_FORMATTING: Final = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
_UNSAFE: Final = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_FORMATTING}]|\r(?!\n)")
_NOT_ONE_LINE: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f{_FORMATTING}]")
_NOT_IN_JSON: Final = re.compile(rf"[\x7f-\x9f{_FORMATTING}]")
_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
_FIRST_PRINTABLE: Final = 0x20
_ONE_BYTE: Final = 0x100


def printable(text: str) -> str:
    """Return `text` with every unsafe character made visible."""
    return _UNSAFE.sub(_picture_of, text)


def printable_line(text: str) -> str:
    """Return `text` on one line: as `printable`, with tabs and line ends made visible too."""
    return _NOT_ONE_LINE.sub(_picture_of, text)


def printable_json(text: str) -> str:
    """Return the same JSON with the unsafe characters in its strings escaped."""
    return _NOT_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class PrintableDecoder:
    """Decodes bytes that come in pieces into printable text. A character may be split between pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes, *, last: bool = False) -> str:
        r"""Return the text of the next piece. A `\r` at its end waits: the next may begin with `\n`."""
        text = self._held + self._decoder.decode(data, last)
        self._held = "\r" if text.endswith("\r") and not last else ""
        return printable(text.removesuffix(self._held) if self._held else text)


def _picture_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < _FIRST_PRINTABLE:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "\N{SYMBOL FOR DELETE}"
    return f"\\x{code:02x}" if code < _ONE_BYTE else f"\\u{code:04x}"
