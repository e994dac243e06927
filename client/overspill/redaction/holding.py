"""Finds where the end of a text may be the beginning of a secret. That end is held back until more comes.

A text that comes with pauses, such as a terminal's, cannot wait for thousands of characters. So only the last
word is held back: most secrets have no spaces. Private keys, cookies, a user's own patterns and literal
values may have spaces; what may be the beginning of one of these is held back, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r"[A-Za-z0-9-]")
_KEYS: Final = ("-----BEGIN ", "---- BEGIN ")
_KEY_NAME: Final = "PRIVATE KEY"
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,50}-----|---- END [A-Z0-9 ]{0,50} ----")
_ENCODED_KEY: Final = "LS0tLS1CRUdJTi"
"""`-----BEGIN` in base64."""
_ENCODED_CERTIFICATE: Final = _ENCODED_KEY + "BDRVJU"
_ENCODED_HEADING_CHARS: Final = 64
_ENCODED_END: Final = re.compile(r"(?:LS0tLS0[=K]|0tLS0t(?:Cg==)?|tLS0tLQ[=o]=)(?=[^A-Za-z0-9+/=])")
_HALF_HEADING: Final = re.compile(
    r"----? ?(?:B|BE|BEG|BEGI|BEGIN)?\Z"
    r"|[Cc]ookie['\"\\]{0,5}[ \t]{0,8}[:=][^\r\n]*\Z"
)
"""The end of a text behind which a key of SSH2 may begin, or a header may go on with a cookie."""
_HEAD_CHARS: Final = 16
"""Characters at the beginning of a value by which it is looked for."""
_PUTTY_KEY: Final = "Private-Lines: "
_PUTTY_END: Final = "Private-MAC: "
_WRAPPED: Final = re.compile(r"\\?(?:\r?\n?|\r?\n[\w-]{1,40})\Z", re.ASCII)


def may_be_wrapped(text: str, end: int) -> bool:
    """Return whether a token that is known up to `end` may go on in the next line."""
    return _WRAPPED.match(text, end) is not None


def held_from(text: str, start: int, known: int, values: Sequence[str], *, is_by_line: bool) -> int:
    """Return where a secret may begin that goes on behind the text, from `start` on; if nowhere, its length.

    Private keys, which are long, may begin at `known` or later: then it is before `start`. `values` are
    literal secrets. With `is_by_line`, a line without an end is held back as a whole.
    """
    return min(
        _line(text, start) if is_by_line else _last_word(text, start),
        _private_key(text, known),
        _encoded_key(text, known),
        _putty_key(text, known),
        _half_heading(text, start),
        *(_value(text, start, value) for value in values),
    )


def _line(text: str, start: int) -> int:
    return max(start, text.rfind("\n", start) + 1)


def _last_word(text: str, start: int) -> int:
    words = text[start:].rsplit(maxsplit=1)
    if not words or text[-1].isspace() or not _WORD.search(words[-1]):
        return len(text)
    return len(text) - len(words[-1])


def _private_key(text: str, start: int) -> int:
    at = max(text.rfind(each, start) for each in _KEYS)
    if at < 0:
        return len(text)
    heading, _, rest = text[at:].partition("\n")
    may_go_on = not rest or (_KEY_NAME in heading and _KEY_END.search(text, at) is None)
    return at if may_go_on else len(text)


def _encoded_key(text: str, start: int) -> int:
    """Return where a private key in base64 begins that has not ended; if there is none, the text's length."""
    at = text.rfind(_ENCODED_KEY, start)
    if at < 0 or text.startswith(_ENCODED_CERTIFICATE, at):
        return len(text)
    has_ended = _ENCODED_END.search(text, at + _ENCODED_HEADING_CHARS) is not None
    return len(text) if has_ended else at


def _putty_key(text: str, start: int) -> int:
    at = text.rfind(_PUTTY_KEY, start)
    return len(text) if at < 0 or _PUTTY_END in text[at:] else at


def _half_heading(text: str, start: int) -> int:
    found = _HALF_HEADING.search(text, start)
    return len(text) if found is None else found.start()


def _value(text: str, start: int, value: str) -> int:
    """Return where the longest beginning of the value begins that the text ends with; else its length."""
    least, head = max(start, len(text) - len(value) + 1), value[:_HEAD_CHARS]
    at = text.find(head, least)  # one character alone may come thousands of times
    while at >= 0:
        if value.startswith(text[at:]):
            return at
        at = text.find(head, at + 1)
    for size in range(min(len(head), len(value) - 1, len(text) - least), 0, -1):
        if text.endswith(head[:size]):
            return len(text) - size
    return len(text)
