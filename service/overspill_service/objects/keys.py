"""Checks object keys: they are segments of `[A-Za-z0-9._-]`, separated by `/`.

No such key leads out of a store.
"""

from __future__ import annotations

import re
from typing import Final

MAX_KEY_LENGTH: Final = 240
"""Characters of a key. With the suffix of a temporary file it must fit a file name of 255 bytes."""

_SEGMENT: Final = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+"
_KEY: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_PREFIX: Final = re.compile(rf"(?:{_SEGMENT}/)*[A-Za-z0-9._-]*")


def is_key(text: str) -> bool:
    return len(text) <= MAX_KEY_LENGTH and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    """Raise `ValueError` if the text is not a key. Callers build keys, so this is their bug."""
    if not is_key(key):
        raise ValueError(
            f"{key[:300]!r} is not an object key: {MAX_KEY_LENGTH} characters at most, segments of "
            "[A-Za-z0-9._-] between single '/', none of them '.' or '..'"
        )


def check_prefix(prefix: str) -> None:
    """Raise `ValueError` if no key can begin with the text. A prefix may end inside a segment."""
    if len(prefix) > MAX_KEY_LENGTH or _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"{prefix[:300]!r} is not a prefix of an object key")


def owner_of(key: str) -> str:
    """Return the owner of an object: the second segment of its key, or of a prefix.

    Empty if there is none.
    """
    return key.partition("/")[2].partition("/")[0]
