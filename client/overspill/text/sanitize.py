"""Make untrusted text safe to show, and find where it may be cut.

Terminal escapes are removed; control characters, text reordering and hidden tags become visible. Only shown
text passes through here. Captured text is not changed.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
WINDOW: Final = 2
"""Characters to look at for each byte of room: a text with colour codes shrinks when it is shown."""

# ECMA-48: CSI … final byte; OSC, DCS, SOS, PM, APC up to BEL or ST (bounded); two-character escapes.
ANSI: Final = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{1,8}[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)

# C0 but tab and newline, DEL, C1, bidirectional controls, line and paragraph separators, surrogates.
_UNSAFE_CLASS: Final = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
)
# Tags, which only models see, but for those that make a flag of a region of the black one before them.
_TAGS: Final = r"(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]+"
_UNSAFE: Final = re.compile(rf"[{_UNSAFE_CLASS}]|\r(?!\n)|{_TAGS}")
_UNSAFE_ASCII: Final = bytes([*range(9), *range(11, 32), 127])
"""Unlike `_UNSAFE` with `\\r`, since a lone one is unsafe: the pattern decides on those."""
_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = "\x7f"
_LAST_C0: Final = "\x1f"

# Characters that belong to the one before them although they are not combining marks (UAX 29, GB9 and GB9a).
_EXTENDING: Final = re.compile(
    "[\u200c\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff]"
)
_JOINER: Final = "\u200d"
_REGIONAL: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_MAX_FLAGS_CHARS: Final = 16 * 1024
"""How far to look back over a row of flags: which two indicators make one depends on where the row begins."""
_MAX_CLUSTER_CHARS: Final = 64


def sanitize(text: str) -> str:
    r"""Return `text` without ANSI escapes. Other control characters become pictures, surrogates U+FFFD.

    Tabs, `\n` and `\r\n` stay, and so does the number of lines.
    """
    if _is_safe_ascii(text) or _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(_picture, ANSI.sub("", text))


def _is_safe_ascii(text: str) -> bool:
    """Return whether `text` is printable ASCII, ten times as fast as a pattern does."""
    return text.isascii() and len(text.encode().translate(None, _UNSAFE_ASCII)) == len(text)


def _picture(match: re.Match[str]) -> str:
    character = match.group()
    if character <= _LAST_C0:
        return chr(_CONTROL_PICTURES + ord(character))
    return "\N{SYMBOL FOR DELETE}" if character == _DELETE else REPLACEMENT


def may_cut(text: str, at: int) -> bool:
    r"""Return whether a cut at `at` breaks no character that a reader sees as one.

    Keeps together `\r\n`, combining sequences, emoji joined by ZWJ, flags, surrogate pairs and terminal
    escapes. Approximates Unicode's UAX 29 without its tables.
    """
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < "\x80" and after < "\x80":
        return not (before == "\r" and after == "\n") and not _inside_escape(text, at)
    if before == _JOINER or _extends(after):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return not _inside_flag(text, at)


def _extends(character: str) -> bool:
    return _EXTENDING.match(character) is not None or unicodedata.category(character)[0] == "M"


def _inside_flag(text: str, at: int) -> bool:
    if text[at] not in _REGIONAL:
        return False
    before = text[max(0, at - _MAX_FLAGS_CHARS) : at]
    return (len(before) - len(before.rstrip(_REGIONAL))) % 2 == 1


def _inside_escape(text: str, at: int) -> bool:
    start = text.rfind("\x1b", max(0, at - _MAX_CLUSTER_CHARS), at)
    if start < 0:
        return False
    match = ANSI.match(text, start)
    return match is not None and match.end() > at


def cut_before(text: str, at: int) -> int:
    """Return the last position up to `at` where `text` may be cut; `at` itself in an endless cluster."""
    positions = range(at, max(-1, at - _MAX_CLUSTER_CHARS), -1)
    return next((position for position in positions if may_cut(text, position)), at)


def cut_after(text: str, at: int) -> int:
    """Return the first position from `at` on where `text` may be cut; `at` itself in an endless cluster."""
    positions = range(at, min(len(text), at + _MAX_CLUSTER_CHARS) + 1)
    return next((position for position in positions if may_cut(text, position)), at)


def longest_fitting(length: int, fits: Callable[[int], bool]) -> int:
    """Return the greatest length up to `length` that fits, by bisection."""
    return bisect_left(range(1, length + 1), 1, key=lambda size: not fits(size))
